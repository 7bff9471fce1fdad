"""Samples that are alone in a direction of a silo's columns: whatever else is in the batch, their label shows.

The leverage of a sample is its own share in the least-squares fit of the batch: 1 for the only one of a category, 1/k
for one of k. With leverage h the fit is h times the sample's own label, give or take sqrt(h (1 - h)) times the others'
deviation: at 1/2 it ranks this sample's label with an AUC of 0.92, at 1 it is the label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from crosshatch.privacy.leakage.row_keys import Ids

LONE = 0.5  # two of a category: their sum tells both where they are alike
_RANK = 1e-9  # of the largest singular value: columns below are none of their own
_ROUNDING = 1e-6

Floats = npt.NDArray[np.float64]
Divide = Callable[[int], Sequence[Ids]]
"""So many rows into batches."""


def leverages(x: Floats) -> Floats:
    """Of samples (n, d), with a column of ones beside theirs: (n,), each from 0 to 1.

    >>> leverages(np.array([[1.0], [0.0], [0.0], [0.0]])).round(3).tolist()
    [1.0, 0.333, 0.333, 0.333]
    """
    left, values, _ = np.linalg.svd(np.column_stack([x, np.ones(len(x))]), full_matrices=False)
    found: Floats = np.square(left[:, values > _RANK * values.max(initial=0)]).sum(axis=1)
    return found


def lone_rows(silos: Sequence[Floats], batches: Sequence[Ids]) -> Ids:
    """Rows with a leverage of `LONE` or more in their batch, at any of the silos with samples (n, d)."""
    alone = np.zeros(sum(map(len, batches)), dtype=bool)
    for x in silos:
        for batch in batches:
            alone[batch] |= leverages(x[batch]) > LONE - _ROUNDING
    return np.flatnonzero(alone)


def rows_to_keep(silos: Sequence[Floats], divide: Divide) -> Ids:
    """All rows but those that would be alone, in whatever batches the rows that are left are divided into."""
    kept = np.arange(len(silos[0]))
    while len(kept):
        alone = lone_rows([x[kept] for x in silos], divide(len(kept)))
        if not len(alone):
            break
        kept = np.delete(kept, alone)
    return kept
