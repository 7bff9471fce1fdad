"""What a silo with a linear block is told of the labels: in every round sums over the derivatives of a batch.

Its rows X of the batch are its own, and so are its weights; what it is told is X^T d / n, where d are the derivatives.
As equations about d they are turned so that each stands by itself: Q^T d = r with orthonormal columns Q.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids

_RANK = 1e-6  # relative to the largest: singular values below are rounding


@dataclass(frozen=True)
class ToldSum:
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

    `samples` is the number of all there are, of which some may never have been in a batch. `moved[t]` is how far the
    silo's own scores have gone until round t. `features` (n, m) are ones and the silo's own columns, made white, and
    `expected[t]` (k, c) what the silo's own scores make of the sums: what all samples have in common goes by these.
    """

    samples: int
    ids: Sequence[Ids]
    columns: Sequence[Matrix]
    values: Sequence[Matrix]
    moved: Matrix
    features: Matrix
    expected: Sequence[Matrix]

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

    @property
    def shared(self) -> tuple[Matrix, Matrix, Matrix]:
        """What every equation makes of the features, ones (N, 1) and columns (N, m - 1), and of own scores (N, c)."""
        made = np.concatenate([q.T @ self.features[ids] for ids, q in zip(self.ids, self.columns, strict=True)])
        return made[:, :1], made[:, 1:], np.concatenate(self.expected)

    def until(self, rounds: int) -> Equations:
        """Those of the first rounds."""
        first = slice(rounds)
        return replace(
            self, ids=self.ids[first], columns=self.columns[first], values=self.values[first],
            moved=self.moved[first], expected=self.expected[first],
        )  # fmt: skip

    def spread(self, most: int) -> Equations:
        """Those of some rounds, spread over all, so that there are at most so many."""
        count = max(1, most * len(self.ids) // self.count)
        if count >= len(self.ids):
            return self
        some = np.linspace(0, len(self.ids) - 1, count).astype(int).tolist()
        picked = ([of[t] for t in some] for of in (self.ids, self.columns, self.values, self.expected))
        ids, columns, values, expected = picked
        return replace(
            self, ids=ids, columns=columns, values=values, moved=self.moved[some], expected=expected
        )  # fmt: skip

    @property
    def repeats(self) -> bool:
        """Whether batches come again and again, so that later rounds are about the same sums over labels."""
        return 2 * len({ids.tobytes() for ids in self.ids}) <= len(self.ids)

    def whole(self, which: Ids | None = None) -> Matrix:
        """All equations, or `which`, as columns over all samples (n, N)."""
        ends = np.cumsum([0, *(columns.shape[1] for columns in self.columns)])
        picked = np.arange(ends[-1]) if which is None else which
        found = np.zeros((self.samples, len(picked)))
        for t, (ids, columns) in enumerate(zip(self.ids, self.columns, strict=True)):
            here = np.flatnonzero((picked >= ends[t]) & (picked < ends[t + 1]))
            found[np.ix_(ids, here)] = columns[:, picked[here] - ends[t]]
        return found


def as_equations(told: Sequence[ToldSum], samples: int) -> Equations:
    """Every round's sums as equations that stand by themselves; columns that repeat others are left out."""
    columns, values, expected = [], [], []
    rows = np.zeros((samples, told[0].rows.shape[1]))
    for one in told:
        rows[one.ids] = one.rows
        left, sizes, right = np.linalg.svd(one.rows / len(one.rows), full_matrices=False)
        kept = sizes > _RANK * sizes[0]
        columns.append(left[:, kept])
        expected.append(left[:, kept].T @ one.expected)
        values.append((right[kept] @ one.means) / sizes[kept, None] - expected[-1])
    sizes_of = [float(np.sqrt((one.expected**2).mean())) for one in told]
    moved = np.concatenate([[0.0], np.cumsum(abs(np.diff(sizes_of)))])
    ids = [one.ids for one in told]
    return Equations(samples, ids, columns, values, moved, _features(rows, np.unique(np.concatenate(ids))), expected)


def _features(rows: Matrix, seen: Ids) -> Matrix:
    """Ones, and the rows (n, d) made white, all columns together as large as the ones; zeros where never seen."""
    left, sizes, _ = np.linalg.svd(rows[seen] - rows[seen].mean(axis=0), full_matrices=False)
    kept = left[:, sizes > _RANK * max(1.0, sizes[0])]
    found = np.zeros((len(rows), 1 + kept.shape[1]))
    found[seen, 0] = 1
    found[seen, 1:] = kept * np.sqrt(len(seen) / max(1, kept.shape[1]))
    return found
