"""Labels that are 0 or 1 from exact sums over a few rows, by meeting in the middle.

From scores of zero the derivative of a sample is 1/2 - y, so that a first gradient tells X^T y to the last digit. All
choices of labels for half of the rows are sorted by one sum, and for every choice of the other half those are looked up
that complete it; the other sums then decide. 48 rows are 2 x 16 million choices.
"""

from __future__ import annotations

import numpy as np

from crosshatch.audit.other_data import Matrix
from crosshatch.privacy.fixed_point import FixedPoint

ROWS = 48
_CHUNK = 20  # bits: choices of the other half that are looked up at once
_MOST = 10**6  # solutions, beyond which sums are said to tell too little


def search(rows: Matrix, means: Matrix, point: FixedPoint, precision: str) -> tuple[Matrix, int] | None:
    """The mean (n,) of all labels that explain the means (d,) of (1/2 - y) times the rows (n, d), and how many do.

    None where none does, for the rows are not those of the sums, or where a million and more do.
    """
    count = len(rows)
    rows = point.encode(rows, "a feature").astype(np.float64) / 2.0**point.fraction_bits
    wanted = rows.sum(axis=0) / 2 - count * means
    close = count * 2 * np.finfo(precision).eps * abs(means) + 1e-12 * abs(rows).sum(axis=0) + 1e-15
    first = np.zeros(rows.shape[1])
    first[np.argmax(np.ptp(rows, axis=0) / close)] = 1.0
    for k in np.flatnonzero(np.ptp(rows, axis=0) == 0)[:1]:  # how many labels are 1 goes into the same sum
        first[k] = 2 * abs(rows).sum(axis=0).max() / abs(rows[0, k])
    second = 1 / close
    half = count // 2
    bits = min(_CHUNK, count - half)
    parts = (rows[:half], rows[half : half + bits], rows[half + bits :])
    (low, inner, outer), (low2, inner2, outer2) = ([_sums(part @ by) for part in parts] for by in (first, second))
    order, inner_order = np.argsort(low).astype(np.int32), np.argsort(-inner).astype(np.int32)
    low, inner, tight = low[order], inner[inner_order], float(close @ abs(first))
    found = []
    for top in range(len(outer)):
        missing = first @ wanted - outer[top] - inner
        rest = second @ wanted - outer2[top]
        places, mine = np.searchsorted(low, missing - tight), np.arange(len(missing))
        while True:
            here = places < len(low)
            here[here] = low[places[here]] <= missing[mine[here]] + tight
            if not here.any():
                break
            places, mine = places[here], mine[here]
            fits = abs(low2[order[places]] + inner2[inner_order[mine]] - rest) <= len(wanted)
            found += [(int(a), int(b), top) for a, b in zip(order[places[fits]], inner_order[mine[fits]], strict=True)]
            if len(found) > _MOST:
                return None
            places = places + 1
    widths = [len(part) for part in parts]
    choices = np.array([[n >> k & 1 for n, w in zip(one, widths, strict=True) for k in range(w)] for one in found])
    good = choices.reshape(-1, count)
    good = good[(abs(good @ rows - wanted) <= close).all(axis=1)]
    return (good.mean(axis=0), len(good)) if len(good) else None


def _sums(column: Matrix) -> Matrix:
    """Of all choices of its numbers (m,): (2^m,), number k by the bits of k."""
    found = np.zeros(1)
    for value in column.tolist():
        found = np.concatenate([found, found + value])
    return found
