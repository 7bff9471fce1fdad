"""A matrix of low rank of which few numbers are there: numbers = rows @ columns^T, by turns and then all at once.

First rows and columns are solved for in turns, each by least squares, while a ridge that fades lets large directions be
found before small ones. That is slow where directions are nearly alike, so Gauss-Newton steps on the columns follow,
the rows eliminated (Golub and Pereyra's variable projection, 1973, with Kaufman's derivative): a few of them reach the
precision of the numbers. Columns go by time, and begin as smooth functions of it.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from crosshatch.audit.other_data import Matrix

_UNKNOWN = 6000  # numbers of columns that are looked for at once, at most: memory goes with its square
_PAIRS = 6 * 10**6  # of numbers in the same row that are looked at in a step
_ROWS = 3000  # that are told, at most, those with most numbers
_WORK = 4 * 10**10  # multiplications of all turns, at most
_RIDGES = 28
_SWEEPS = (10, 1)  # with each, at first and where that ends badly
_EXACT = 1e-5
_STEPS = 20
_DAMPED = 1e-3  # at first, relative to the diagonal


@dataclass(frozen=True)
class Padded:
    """The numbers of every row side by side, (m, l): of which columns they are, and whether there is one at all."""

    columns: npt.NDArray[np.int64]
    numbers: Matrix
    there: npt.NDArray[np.bool_]


def padded(numbers: csr_array) -> Padded:
    """From a sparse matrix with all rows."""
    counts = np.diff(numbers.indptr)
    there = np.arange(counts.max(initial=1)) < counts[:, None]
    columns, values = np.zeros(there.shape, np.int64), np.zeros(there.shape)
    columns[there], values[there] = numbers.indices, numbers.data
    return Padded(columns, values, there)


def columns_behind(
    numbers: csr_array, rank: int, width: int, draw: np.random.Generator
) -> tuple[Matrix, Matrix, float] | None:
    """Columns (k, rank) of which all rows (m, k) are combinations, each `width` of the same time; and some of the rows.

    The third is the root mean square of what is left of the numbers. None where there are too few of them.
    """
    every = -(-numbers.shape[1] // (width * max(1, _UNKNOWN // (rank * width))))
    few = csr_array(numbers[:, np.arange(numbers.shape[1]) // width % every == 0])
    enough = draw.permutation(np.flatnonzero(np.diff(few.indptr) > rank))
    longest = np.maximum.accumulate(np.diff(few.indptr)[enough])
    kept = enough[np.arange(1, len(enough) + 1) * longest**2 <= _PAIRS]
    few = csr_array(few[kept])
    if int((np.diff(few.indptr) - rank).sum()) < 2 * few.shape[1] * rank:
        return None
    columns, left, start = np.empty(0), np.inf, smooth(few.shape[1], rank, width)
    for sweeps in _SWEEPS:
        if left > _EXACT:  # another start may end elsewhere
            again = _all_at_once(padded(few), _even(in_turns(few, start, least=1e-9, sweeps=sweeps)[1]))
            columns, left = min((columns, left), again, key=lambda one: one[1])
    columns = _even(columns)
    if every > 1:  # the others follow from rows that are known now
        columns = nearest(csr_array(csr_array(numbers[kept]).T), _rows(padded(few), columns), 1e-12)
    often = kept[np.diff(few.indptr) >= np.median(np.diff(few.indptr))][:_ROWS]
    return columns, _rows(padded(csr_array(numbers[often])), columns), left


def in_turns(numbers: csr_array, columns: Matrix, *, least: float, sweeps: int = _SWEEPS[0]) -> tuple[Matrix, Matrix]:
    """Rows (m, r) and columns (k, r), by turns, from columns to begin with, with a ridge that fades to the `least`."""
    sweeps = int(np.clip(_WORK / (2 * _RIDGES * numbers.nnz * columns.shape[1] ** 2), 1, sweeps))
    across = csr_array(numbers.T)
    for ridge in np.geomspace(1, least, _RIDGES).tolist():
        for _ in range(sweeps):
            rows = nearest(numbers, columns, ridge)
            columns = nearest(across, rows, ridge)
    return rows, columns


def smooth(count: int, rank: int, width: int) -> Matrix:
    """Columns (count, rank) that are polynomials of time, `width` of the same time each by itself."""
    times = np.linspace(-1, 1, count // width)
    powers = np.polynomial.legendre.legvander(times, -(-rank // width) - 1)
    found: Matrix = np.einsum("tp,ab->tapb", powers, np.eye(width)).reshape(count, -1)[:, :rank]
    return found


def nearest(numbers: csr_array, other: Matrix, ridge: float) -> Matrix:
    """For each row of the numbers (m, k) the combination (m, r) of `other` (k, r) that is nearest where they are."""
    rank = other.shape[1]
    there = csr_array((np.ones_like(numbers.data), numbers.indices, numbers.indptr), shape=numbers.shape)
    pairs = (other[:, :, None] * other[:, None, :]).reshape(len(other), rank * rank)
    grams = (there @ pairs).reshape(-1, rank, rank) + (ridge + 1e-12) * np.eye(rank)
    return np.asarray(np.linalg.solve(grams, (numbers @ other)[..., None])[..., 0], dtype=np.float64)


def _even(columns: Matrix) -> Matrix:
    """The same span, with columns of mean square 1 that are at right angles."""
    found: Matrix = np.linalg.qr(columns)[0] * np.sqrt(len(columns))
    return found


def _rows(of: Padded, columns: Matrix) -> Matrix:
    """(m, r), where every row has at least as many numbers."""
    _, corner, inner, _ = _project(of, columns)
    return _solved(corner, inner)


def _project(of: Padded, columns: Matrix) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Q (m, l, r) and R of the columns where numbers are, Q^T times the numbers, and what is left of these (m, l)."""
    turned, corner = np.linalg.qr(columns[of.columns] * of.there[..., None])
    inner = np.einsum("mlr,ml->mr", turned, of.numbers)
    return turned, corner, inner, of.numbers - np.einsum("mlr,mr->ml", turned, inner)


def _solved(corner: Matrix, inner: Matrix) -> Matrix:
    grams = np.swapaxes(corner, 1, 2) @ corner
    tiny = 1e-13 * np.trace(grams, axis1=1, axis2=2)[:, None, None] * np.eye(grams.shape[1])
    found: Matrix = np.linalg.solve(grams + tiny, np.swapaxes(corner, 1, 2) @ inner[..., None])[..., 0]
    return found


def _all_at_once(of: Padded, columns: Matrix) -> tuple[Matrix, float]:
    """Gauss-Newton steps, damped where one does not help; columns, and the root mean square of what is left."""
    turned, corner, inner, left = _project(of, columns)
    missed, damped, count = float((left**2).sum()), _DAMPED, int(of.there.sum())
    for _ in range(_STEPS):
        slope, curved = _normal(of, turned, left, _solved(corner, inner), len(columns))
        diagonal, before = np.diag(curved).copy() + 1e-12, missed
        while damped < 1e6:
            np.fill_diagonal(curved, diagonal * (1 + damped))
            try:
                step = cho_solve(cho_factor(curved, check_finite=False), slope).reshape(columns.shape)
            except LinAlgError:
                damped *= 5
                continue
            tried = _project(of, columns + step)
            if float((tried[3] ** 2).sum()) < missed:
                columns, (turned, corner, inner, left) = columns + step, tried
                missed, damped = float((left**2).sum()), max(damped / 5, 1e-14)
                break
            damped *= 5
        if before - missed <= 1e-3 * before or missed <= 1e-24 * count:
            break
    freedom = max(1, count - columns.shape[1] * (len(of.numbers) + len(columns)))
    return columns, float(np.sqrt(missed / freedom))


def _normal(of: Padded, turned: Matrix, left: Matrix, rows: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """The right side (k r,) and the matrix (k r, k r) of a step's equations."""
    rank = rows.shape[1]
    free = of.there[:, None, :] * np.eye(of.there.shape[1]) - turned @ np.swapaxes(turned, 1, 2)
    pairs = (of.columns[:, :, None] * count + of.columns[:, None, :]).ravel()
    slope, curved = np.zeros((count, rank)), np.zeros((count, rank, count, rank))
    for a in range(rank):
        slope[:, a] = np.bincount(of.columns.ravel(), (left * rows[:, a, None]).ravel(), count)
        for b in range(a + 1):
            both = np.bincount(pairs, (free * (rows[:, a] * rows[:, b])[:, None, None]).ravel(), count**2)
            curved[:, a, :, b] = both.reshape(count, count)
            curved[:, b, :, a] = both.reshape(count, count).T
    return slope.ravel(), curved.reshape(count * rank, count * rank)
