"""Labels that are 0 or 1 from exact sums over a few rows, by meeting in the middle, or by a short vector of a lattice.

From scores of zero the derivative of a sample is 1/2 - y, so that a first gradient tells X^T y to the last digit. All
choices of labels for half of the rows are sorted by one sum, and for every choice of the other half those are looked up
that complete it; the other sums then decide. 48 rows are 2 x 16 million choices. Of more rows the signs 2 y - 1 are
sought as a vector of a lattice that is far shorter than others, which it is where sums have many more digits than there
are labels (Lenstra, Lenstra and Lovasz, "Factoring Polynomials with Rational Coefficients", 1982).
"""

import numpy as np

from crosshatch.audit.other_data import Matrix
from crosshatch.privacy.fixed_point import FixedPoint

ROWS = 48
LATTICE_ROWS = 128  # time goes with the fourth power: of 80 rows it takes seconds
_CHUNK = 20  # bits: choices of the other half that are looked up at once
_MOST = 10**6  # solutions, beyond which sums are said to tell too little
_DIGITS = 44  # bits of a sum that a lattice knows
_AT_ONCE = 4  # of these bits that come in before it is reduced again
_SHORTER = 0.99


def search(rows: Matrix, means: Matrix, point: FixedPoint, precision: str) -> tuple[Matrix, int] | None:
    """The mean (n,) of all labels that explain the means (d,) of (1/2 - y) times the rows (n, d), and how many do.

    None where none does, for the rows are not those of the sums, or where a million and more do. Of more than 48 rows
    one choice of labels at most is found, and none where sums tell too little.
    """
    count = len(rows)
    rows = point.encode(rows, "a feature").astype(np.float64) / 2.0**point.fraction_bits
    wanted = rows.sum(axis=0) / 2 - count * means
    close = count * 2 * np.finfo(precision).eps * abs(means) + 1e-12 * abs(rows).sum(axis=0) + 1e-15
    good = (_in_the_middle if count <= ROWS else _by_a_lattice)(rows, wanted, close)
    good = good[(abs(good @ rows - wanted) <= close).all(axis=1)]
    return (good.mean(axis=0), len(good)) if len(good) else None


def _by_a_lattice(rows: Matrix, wanted: Matrix, close: Matrix) -> Matrix:
    """The choice of labels (1, n) that a reduced lattice has; (0, n) where it has none.

    Of whole numbers (n + 1,), the signs and 1, beside what they leave of the sums, counted by how close these are.
    """
    sums = np.vstack([rows, rows.sum(axis=0) - 2 * wanted])
    sums = np.rint(sums * np.minimum(0.5 / close, 2.0**_DIGITS / abs(rows).sum(axis=0)))
    whole = np.eye(len(sums))
    if (np.log2(np.maximum(abs(sums), 1)).max(axis=0)).sum() <= len(rows):
        return whole[:0, :-1]
    for bits in range(_DIGITS, -1, -_AT_ONCE):
        whole = np.rint(_reduced(np.hstack([whole, whole @ sums / 2.0**bits]))[:, : len(sums)])
    signs = whole[(abs(whole) == 1).all(axis=1)][:1]
    found: Matrix = (signs[:, :-1] * signs[:, -1:] + 1) / 2
    return found


def _reduced(basis: Matrix) -> Matrix:
    """Rows (n, m) that span the same lattice, each as short as its neighbours allow; in place."""
    corner = np.linalg.qr(basis.T)[1]
    sizes, by = np.diag(corner) ** 2, (corner / np.diag(corner)[:, None]).T
    k = 1
    while k < len(basis):
        while len(far := np.flatnonzero(abs(by[k, :k]) > 0.51)):
            times = np.rint(by[k, far[-1]])
            basis[k] -= times * basis[far[-1]]
            by[k, : far[-1] + 1] -= times * by[far[-1], : far[-1] + 1]
        turned = by[k, k - 1]
        size = sizes[k] + turned**2 * sizes[k - 1]
        if size >= _SHORTER * sizes[k - 1]:
            k += 1
            continue
        two = [k - 1, k]
        basis[two], by[two, : k - 1] = basis[two[::-1]], by[two[::-1], : k - 1]
        by[k, k - 1] = turned * sizes[k - 1] / size
        sizes[two] = size, sizes[k - 1] * sizes[k] / size
        below = by[k + 1 :, k].copy()
        by[k + 1 :, k] = by[k + 1 :, k - 1] - turned * below
        by[k + 1 :, k - 1] = below + by[k, k - 1] * by[k + 1 :, k]
        k = max(k - 1, 1)
    return basis


def _in_the_middle(rows: Matrix, wanted: Matrix, close: Matrix) -> Matrix:
    """All choices (m, n) that may be right; none where there are a million and more."""
    count = len(rows)
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
                return np.empty((0, count))
            places = places + 1
    widths = [len(part) for part in parts]
    choices = np.array([[n >> k & 1 for n, w in zip(one, widths, strict=True) for k in range(w)] for one in found])
    return choices.reshape(-1, count)


def _sums(column: Matrix) -> Matrix:
    """Of all choices of its numbers (m,): (2^m,), number k by the bits of k."""
    found = np.zeros(1)
    for value in column.tolist():
        found = np.concatenate([found, found + value])
    return found
