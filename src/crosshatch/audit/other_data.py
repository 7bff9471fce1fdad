"""Other data and weights by which a linear silo would send the very same messages: the freedom of Theorem 1's proof.

Liu et al., arXiv:1912.11187, supplement A: with an orthogonal U the rows X U and the weights theta U give the scores
(X U)(theta U)^T = X theta^T, and as gradients and L2 terms are turned by U as well, they do so after any number of
steps. Who knows the initial weights knows that U leaves these where they are. A bias is no part of it: its gradient is
the sum of the derivatives, whatever the rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.seeds import generator

Matrix = npt.NDArray[np.float64]

HALF = 0.5  # of the norm of the data: what other data must differ by to count
_TRIES = 20
_FITS = 5  # tries to keep the statistics
_WIDE = 100  # free directions, beyond which that takes too long
_FIXED = 1e-12  # relative to the largest: directions below are none
_SAME = 1e-9  # relative: deviations that are kept


@dataclass(frozen=True)
class OtherData:
    """An orthogonal `turn` (d, d), `rows` (n, d) turned by it, and what there was to choose from.

    `free`: in so many directions the initial weights say nothing. Two and more leave infinitely many turns, one leaves
    a reflection. `statistics_kept`: the columns of both data sets have the same means and deviations.
    """

    turn: Matrix
    rows: Matrix
    free: int
    statistics_kept: bool

    def difference(self, x: Matrix) -> float:
        """How far the rows are from the true ones, relative to the norm of these."""
        return relative(self.rows, x)


def relative(found: Matrix, true: Matrix) -> float:
    """The norm of the difference over that of the truth."""
    norm = float(np.linalg.norm(true))
    return float(np.linalg.norm(found - true)) / norm if norm else 0.0


def find_other_data(x: Matrix, fixed: Matrix, *, seed: int) -> OtherData | None:
    """Other rows for x (n, d), by a turn that leaves the `fixed` weights (c, d) alone; None where there are none.

    One that keeps the columns' means and deviations is preferred, for others may know that columns are standardised.
    """
    free = _complement(fixed, x.shape[1])
    if not free.shape[1]:
        return None
    draw = generator(seed, "audit", *x.shape)
    kept = _keeping_statistics(x, fixed, draw)
    if kept is not None:
        return OtherData(kept, x @ kept, free.shape[1], statistics_kept=True)
    for _ in range(_TRIES):
        turn = _turn(free, _random_orthogonal(free.shape[1], draw))
        if relative(x @ turn, x) > HALF:
            return OtherData(turn, x @ turn, free.shape[1], statistics_kept=False)
    turn = _turn(free, -np.eye(free.shape[1]))  # none is farther
    return OtherData(turn, x @ turn, free.shape[1], statistics_kept=False)


def _complement(fixed: Matrix, width: int) -> Matrix:
    """Orthonormal columns (d, m) of the directions in which the fixed rows (c, d) have nothing."""
    _, sizes, directions = np.linalg.svd(fixed.reshape(-1, width), full_matrices=True)
    rank = int((sizes > _FIXED * max(1.0, sizes.max(initial=0.0))).sum())
    complement: Matrix = directions[rank:].T
    return complement


def _turn(free: Matrix, inner: Matrix) -> Matrix:
    """`inner` (m, m) in the free directions, the identity in all others."""
    found: Matrix = np.eye(len(free)) + free @ (inner - np.eye(free.shape[1])) @ free.T
    return found


def _random_orthogonal(size: int, draw: np.random.Generator) -> Matrix:
    """Uniform among all orthogonal matrices."""
    q, r = np.linalg.qr(draw.normal(size=(size, size)))
    found: Matrix = q * np.sign(np.diag(r))
    return found


def _keeping_statistics(x: Matrix, fixed: Matrix, draw: np.random.Generator) -> Matrix | None:
    """A turn far from the identity after which every column has the mean and the deviation it had; None: not found.

    Means stay where the turn leaves them alone. For the deviations it is moved, from anywhere, until all are right.
    """
    free = _complement(np.vstack([fixed.reshape(-1, x.shape[1]), x.mean(axis=0)]), x.shape[1])
    size = free.shape[1]
    if not 2 <= size <= _WIDE:
        return None
    squares = torch.from_numpy(x.T @ x / len(x))
    wanted, basis = squares.diagonal(), torch.from_numpy(free)
    for _ in range(_FITS):
        start = torch.from_numpy(_random_orthogonal(size, draw))
        turn = _fit(start, basis, squares, wanted)
        found = _turn(free, turn.numpy())
        off = (torch.from_numpy(((x @ found) ** 2).mean(axis=0)) - wanted).abs().max()
        if off <= _SAME * wanted.max() and relative(x @ found, x) > HALF:
            return found
    return None


def _fit(start: Tensor, basis: Tensor, squares: Tensor, wanted: Tensor) -> Tensor:
    """The orthogonal matrix near `start` (m, m) whose turn gives the wanted mean squares of the columns."""
    size = len(start)
    rows, columns = torch.triu_indices(size, size, 1)
    angles = torch.zeros(len(rows), dtype=torch.float64, requires_grad=True)
    rest = torch.eye(len(basis), dtype=torch.float64) - basis @ basis.T

    def inner() -> Tensor:
        skew = torch.zeros(size, size, dtype=torch.float64).index_put((rows, columns), angles)
        turned: Tensor = start @ torch.linalg.matrix_exp(skew - skew.T)
        return turned

    def loss() -> Tensor:
        turn = rest + basis @ inner() @ basis.T
        return ((turn * (squares @ turn)).sum(0) - wanted).square().sum()

    optimiser = torch.optim.LBFGS(
        [angles], max_iter=200, tolerance_grad=1e-16, tolerance_change=1e-32, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        value = loss()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    left, _, right = torch.linalg.svd(inner().detach())
    found: Tensor = left @ right  # orthogonal to the last bit
    return found
