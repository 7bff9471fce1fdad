"""What a silo with a linear block is told of the labels: in every round sums over the derivatives of a batch.

Its rows X of the batch are its own, and so are its weights; what it is told is X^T d / n, where d are the derivatives.
As equations about d they are turned so that each stands by itself: Q^T d = r with orthonormal columns Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids

_RANK = 1e-6  # relative to the largest: singular values below are rounding


@dataclass(frozen=True)
class Told:
    """Of one round: the samples `ids` (b,), the silo's `rows` (b, d), and the mean of derivative times row (d, c).

    `expected` (b, c) is how far the silo's own scores alone move the derivatives from where they are at a score of 0.
    """

    ids: Ids
    rows: Matrix
    expected: Matrix
    means: Matrix


@dataclass(frozen=True)
class Equations:
    """`columns[t]` (b, k) times the derivatives of the samples `ids[t]`, less what is expected, are `values[t]` (k, c).

    `samples` is the number of all there are, of which some may never have been in a batch.
    `moved[t]` is how far the silo's own scores have gone until round t.
    """

    samples: int
    ids: Sequence[Ids]
    columns: Sequence[Matrix]
    values: Sequence[Matrix]
    moved: Matrix

    @property
    def count(self) -> int:
        """Of all rounds together."""
        return sum(columns.shape[1] for columns in self.columns)

    @property
    def seen(self) -> Ids:
        """The samples of all batches, in order."""
        return np.unique(np.concatenate(self.ids))

    @property
    def rounds(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """The round of every equation."""
        return np.repeat(np.arange(len(self.columns)), [columns.shape[1] for columns in self.columns])

    def until(self, rounds: int) -> Equations:
        """Those of the first rounds."""
        first = slice(rounds)
        return Equations(self.samples, self.ids[first], self.columns[first], self.values[first], self.moved[first])

    def whole(self, which: Ids | None = None) -> Matrix:
        """All equations, or `which`, as columns over all samples (n, N)."""
        ends = np.cumsum([0, *(columns.shape[1] for columns in self.columns)])
        picked = np.arange(ends[-1]) if which is None else which
        found = np.zeros((self.samples, len(picked)))
        for t, (ids, columns) in enumerate(zip(self.ids, self.columns, strict=True)):
            here = np.flatnonzero((picked >= ends[t]) & (picked < ends[t + 1]))
            found[np.ix_(ids, here)] = columns[:, picked[here] - ends[t]]
        return found


def as_equations(told: Sequence[Told], samples: int) -> Equations:
    """Every round's sums as equations that stand by themselves; columns that repeat others are left out."""
    columns, values = [], []
    for one in told:
        left, sizes, right = np.linalg.svd(one.rows / len(one.rows), full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        columns.append(left[:, kept])
        values.append((right[kept] @ one.means) / sizes[kept, None] - left[:, kept].T @ one.expected)
    sizes_of = [float(np.sqrt((one.expected**2).mean())) for one in told]
    moved = np.concatenate([[0.0], np.cumsum(abs(np.diff(sizes_of)))])
    return Equations(samples, [one.ids for one in told], columns, values, moved)
