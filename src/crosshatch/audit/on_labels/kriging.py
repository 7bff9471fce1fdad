"""Labels by kriging over rounds: one Gaussian process for what the derivatives of all samples were in all rounds.

A derivative is d_i(t) = e_i(t) + f_i(t): what the silo's own score makes of it, which it knows, and the rest. At scores
of zero f_i is the label, up to sign and shift, and it drifts away as the other side's scores move. All sums of all
rounds are linear in f, so that with a Gaussian prior its mean given all of them is a linear solve. The prior has the
label, which fades by a factor 1 / (1 + rate t), and a drift of every sample's own. Besides there is what samples have
in common: labels and drifts that go by the silo's own columns, and by what its scores make less of a derivative that
the other side's have moved. How much there is of each is what makes the sums themselves most likely, so that no label
is needed to choose it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import torch
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from torch import Tensor

from crosshatch.audit.on_labels.told_sums import Equations
from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids

DENSE = 3000  # equations, up to which the solve is exact
_NUMBERS = 2 * 10**7  # of these equations over all samples, beyond which there are too many for memory
LABEL = 0.25  # the variance of a label that is 0 or 1
_FITTED = 600  # equations by which the prior is chosen
_STEPS = 60
_FUNCTIONS = 10  # of time, at most, for a drift in large problems
_ITERATIONS = 600
_START = np.log([1e-2, 1e-4, 1e-6, 1e-4, 1e-6, 1e-2, 1e-4, 1e-6, 1e-2, 1e-5, 1e-6])
_LEAST = 1e-9  # noise: what rounding leaves


@dataclass(frozen=True)
class Drift:
    """How much there is of a random walk (rough) and of the sum of one (smooth), beside what labels make (`label`)."""

    label: Tensor
    rough: Tensor
    smooth: Tensor


@dataclass(frozen=True)
class Prior:
    """How fast labels fade, the drifts of each sample and of what all have in common, and what is left as noise.

    `clock[t]` is how late it is in round t: drifts may slow down as training settles. In common are ones, the silo's
    columns and its own scores, as in `Equations.shared`.
    """

    clock: Tensor
    rate: Tensor
    own: Drift
    shared: tuple[Drift, Drift, Drift]
    noise: Tensor

    def fading(self, rounds: Ids) -> Tensor:
        """By what the label counts in these rounds."""
        return 1 / (1 + self.rate * self.clock[rounds])

    def over_time(self, of: Drift, rounds: Ids, *, labels: bool = True) -> Tensor:
        """The covariance of something between rounds, with what labels make of it or without."""
        t, fading = self.clock[rounds], self.fading(rounds)
        low, high = torch.minimum(t[:, None], t), torch.maximum(t[:, None], t)
        found = of.rough * low + of.smooth * low**2 * (3 * high - low) / 6
        return found + of.label * torch.outer(fading, fading) if labels else found

    def covariance(self, rounds: Ids, products: tuple[Tensor, ...], *, labels: bool = True) -> Tensor:
        """Of equations in these rounds with such `products`, with what labels make of them or without."""
        found = self.noise * torch.eye(len(rounds), dtype=torch.float64)
        for of, both in zip((self.own, *self.shared), products, strict=True):
            found = found + both * self.over_time(of, rounds, labels=labels)
        return found


def choose_prior(equations: Equations, values: Matrix, sizes: Sequence[float]) -> tuple[float, Prior]:
    """What makes the values (N, c) of the equations most likely, or those of 600 of them spread over all rounds.

    Values are taken as multiples of one of the `sizes`, which comes first, so that a label is of a size that is known.
    """
    rounds = len(equations.ids)
    steps = np.arange(rounds, dtype=np.float64)
    clocks = [steps, equations.moved * rounds / (equations.moved[-1] or 1.0)]
    tried = [(size, *_fit(equations, values / size, clock)) for size, clock in product(sizes, clocks)]
    numbers = min(_FITTED, equations.count) * values.shape[1]
    size, _, prior = min(tried, key=lambda one: one[1] + numbers * np.log(one[0]))
    return size, prior


def _fit(equations: Equations, values: Matrix, clock: Matrix) -> tuple[float, Prior]:
    """How unlikely the likeliest prior makes the values, and this prior."""
    pick = np.unique(np.linspace(0, equations.count - 1, _FITTED).astype(np.int64))
    rounds, right, when = equations.rounds[pick], torch.from_numpy(values[pick]), torch.from_numpy(clock)
    products = _products(equations, pick)
    logs = torch.tensor(_START, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [logs], max_iter=_STEPS, tolerance_change=1e-4, tolerance_grad=1e-3, line_search_fn="strong_wolfe"
    )
    best = [(np.inf, logs.detach().clone())]

    def unlikely() -> Tensor:
        optimiser.zero_grad()
        root, failed = torch.linalg.cholesky_ex(_as_prior(logs, when).covariance(rounds, products))
        if int(failed):
            return logs.sum() * 0 + 1e12
        part = torch.linalg.solve_triangular(root, right, upper=False)
        found: Tensor = 0.5 * part.square().sum() + right.shape[1] * torch.log(torch.diagonal(root)).sum()
        found.backward()  # type: ignore[no-untyped-call]
        if float(found.detach()) < best[0][0]:
            best[0] = float(found.detach()), logs.detach().clone()
        return found

    optimiser.step(unlikely)  # type: ignore[no-untyped-call]
    return best[0][0], _as_prior(best[0][1], when)


def _as_prior(logs: Tensor, clock: Tensor) -> Prior:
    rate, *drifts, noise = torch.exp(torch.clamp(logs, -25, 3))
    nothing = torch.zeros_like(noise)
    own, ones, columns, scores = drifts[:2], drifts[2:4], drifts[4:7], drifts[7:]
    shared = (Drift(nothing + LABEL, *ones), Drift(*columns), Drift(nothing, *scores))
    return Prior(clock, rate, Drift(nothing + LABEL, *own), shared, noise + _LEAST)


def _products(equations: Equations, pick: Ids | slice = slice(None)) -> tuple[Tensor, ...]:
    """Of every two equations (N, N): by the samples they share, and by what these have in common."""
    whole = equations.whole(np.arange(equations.count)[pick])
    return tuple(torch.from_numpy(made @ made.T) for made in (whole.T, *(made[pick] for made in equations.shared)))


def likelihood(equations: Equations, values: Matrix, prior: Prior) -> tuple[Matrix, Matrix]:
    """Z (N, n) and z (N, c) so that labels a have likelihood exp(-|z - Z a|^2 / 2): all else is averaged out."""
    rounds, whole = equations.rounds, equations.whole()
    beside = prior.covariance(rounds, _products(equations), labels=False)
    root = np.linalg.cholesky(beside.numpy())
    by = solve_triangular(root, (whole * prior.fading(rounds).numpy()).T, lower=True)
    return by, solve_triangular(root, values, lower=True)


def dense(equations: Equations) -> bool:
    """Whether the equations are few enough for an exact solve, which keeps some matrices of all their numbers."""
    return equations.count <= DENSE and equations.count * equations.samples <= _NUMBERS


def krige(equations: Equations, values: Matrix, prior: Prior) -> tuple[Matrix, Matrix]:
    """What labels make of every sample's derivative given the values (N, c) of all equations, and its part in common.

    Both are means (n, c).
    """
    rounds, shared = equations.rounds, equations.shared
    if dense(equations):
        solved = np.linalg.solve(prior.covariance(rounds, _products(equations)).numpy(), values)
    else:
        solved = _solve_many(equations, values, prior)
    solved *= prior.fading(rounds).numpy()[:, None]
    each, first = np.zeros((equations.samples, values.shape[1])), 0
    for ids, left in zip(equations.ids, equations.columns, strict=True):
        each[ids] += LABEL * left @ solved[first : first + left.shape[1]]
        first += left.shape[1]
    ones, columns = (float(of.label) * made.T @ solved for of, made in zip(prior.shared[:2], shared[:2], strict=True))
    common = equations.features @ np.concatenate([ones, columns])
    return each + common, common


def _solve_many(equations: Equations, values: Matrix, prior: Prior) -> Matrix:
    """Values (N, c) over their covariance, by conjugate gradients, with drifts in a few functions of time."""
    rounds = np.arange(len(equations.ids))
    own, *together = (_root(prior.over_time(of, rounds).numpy()) for of in (prior.own, *prior.shared))  # (T, k) each
    ends = np.cumsum([0, *(columns.shape[1] for columns in equations.columns)])
    places = [slice(*two) for two in pairwise(ends)]
    parts = list(zip(equations.ids, equations.columns, places, own, strict=True))
    shared = list(zip(equations.shared, (root[equations.rounds] for root in together), strict=True))

    def covariance(of: Matrix) -> Matrix:
        of = of.ravel()
        each = np.zeros((equations.samples, own.shape[1]))
        for ids, columns, place, when in parts:
            each[ids] += (columns @ of[place])[:, None] * when
        found: Matrix = np.concatenate([columns.T @ (each[ids] @ when) for ids, columns, _, when in parts])
        for made, root in shared:
            found += ((made @ (made.T @ (of[:, None] * root))) * root).sum(axis=1)
        return found + float(prior.noise) * of

    operator = LinearOperator((equations.count, equations.count), matvec=covariance, dtype=np.float64)
    return np.column_stack([cg(operator, column, rtol=1e-6, maxiter=_ITERATIONS)[0] for column in values.T])


def _root(covariance: Matrix) -> Matrix:
    """A few columns whose products are nearly the covariance."""
    sizes, vectors = np.linalg.eigh(covariance)
    kept = np.arange(len(sizes))[::-1][:_FUNCTIONS]
    found: Matrix = vectors[:, kept] * np.sqrt(np.maximum(sizes[kept], 0))
    return found
