"""Labels by kriging over rounds: one Gaussian process for what the derivatives of all samples were in all rounds.

A derivative is d_i(t) = e_i(t) + f_i(t): what the silo's own score makes of it, which it knows, and the rest. At scores
of zero f_i is the label, up to sign and shift, and it drifts away as the other side's scores move. All sums of all
rounds are linear in f, so that with a Gaussian prior its mean given all of them is a linear solve. The prior has the
label, which fades by a factor 1 / (1 + rate t), a drift of every sample's own and one that all have in common; how much
there is of each is what makes the sums themselves most likely, so that no label is needed to choose it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from crosshatch.audit.on_labels.told_sums import Equations
from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids

_DENSE = 3000  # equations, up to which the solve is exact
_NUMBERS = 2 * 10**7  # of these equations over all samples, beyond which there are too many for memory
LABEL = 0.25  # the variance of a label that is 0 or 1
_FITTED = 300  # equations by which the prior is chosen
_TRIES = 150
_FUNCTIONS = 10  # of time, at most, for a drift in large problems
_ITERATIONS = 600
_START = np.log([1e-2, 1e-4, 1e-6, 1e-4, 1e-6, 1e-6])


@dataclass(frozen=True)
class Prior:
    """How fast labels fade, the drifts of each sample (rough, smooth) and of all together, and what is left as noise.

    `clock[t]` is how late it is in round t: drifts may slow down as training settles.
    """

    clock: Matrix
    rate: float
    own: tuple[float, float]
    common: tuple[float, float]
    noise: float

    def fading(self, rounds: Ids) -> Matrix:
        """By what the label counts in these rounds."""
        found: Matrix = 1 / (1 + self.rate * self.clock[rounds])
        return found

    def drift(self, rounds: Ids, *, common: bool = False) -> Matrix:
        """The covariance of a drift between rounds: a random walk, and the sum of one."""
        rough, smooth = self.common if common else self.own
        t, fading = self.clock[rounds], self.fading(rounds)
        low, high = np.minimum.outer(t, t), np.maximum.outer(t, t)
        found: Matrix = rough * low + smooth * low**2 * (3 * high - low) / 6
        return found + (LABEL * np.outer(fading, fading) if common else 0)

    def beside_labels(self, rounds: Ids, gram: Matrix, ones: Matrix) -> Matrix:
        """The covariance of equations in these rounds but for what labels make of it."""
        found: Matrix = gram * self.drift(rounds) + np.outer(ones, ones) * self.drift(rounds, common=True)
        found[np.diag_indices(len(rounds))] += self.noise
        return found


def choose_prior(equations: Equations, values: Matrix) -> Prior:
    """What makes the values (N, c) of the equations most likely, or those of 300 of them spread over all rounds."""
    rounds = len(equations.ids)
    steps = np.arange(rounds, dtype=np.float64)
    clocks = [steps, equations.moved * rounds / (equations.moved[-1] or 1.0)]
    return min((_fit(equations, values, clock) for clock in clocks), key=lambda one: one[0])[1]


def _fit(equations: Equations, values: Matrix, clock: Matrix) -> tuple[float, Prior]:
    pick = np.unique(np.linspace(0, equations.count - 1, _FITTED).astype(np.int64))
    left, rounds, right = equations.whole(pick), equations.rounds[pick], values[pick]
    gram, ones = left.T @ left, left.sum(axis=0)

    def unlikely(logs: Matrix) -> float:
        prior = _as_prior(logs, clock)
        fading = prior.fading(rounds)
        covariance = prior.beside_labels(rounds, gram, ones) + LABEL * gram * np.outer(fading, fading)
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return 1e12
        part = solve_triangular(root, right, lower=True)
        return float(0.5 * (part**2).sum() + right.shape[1] * np.log(np.diag(root)).sum())

    best = minimize(unlikely, _START, method="Nelder-Mead", options={"maxiter": _TRIES, "adaptive": True})
    return float(best.fun), _as_prior(best.x, clock)


def _as_prior(logs: Matrix, clock: Matrix) -> Prior:
    rate, rough, smooth, all_rough, all_smooth, noise = np.exp(np.clip(logs, -25, 2)).tolist()
    return Prior(clock, rate, (rough, smooth), (all_rough, all_smooth), noise + 1e-9)


def likelihood(equations: Equations, values: Matrix, prior: Prior) -> tuple[Matrix, Matrix, float]:
    """Z (N, n), z (N, c) and s so that labels a have likelihood exp(-|z - Z a|^2 / 2 - s): all else is averaged out."""
    rounds, whole = equations.rounds, equations.whole()
    root = np.linalg.cholesky(prior.beside_labels(rounds, whole.T @ whole, whole.sum(axis=0)))
    return (
        solve_triangular(root, (whole * prior.fading(rounds)).T, lower=True),
        solve_triangular(root, values, lower=True),
        float(np.log(np.diag(root)).sum()),
    )


def dense(equations: Equations) -> bool:
    """Whether the equations are few enough for an exact solve, which keeps some matrices of all their numbers."""
    return equations.count <= _DENSE and equations.count * equations.samples <= _NUMBERS


def krige(equations: Equations, values: Matrix, prior: Prior) -> Matrix:
    """The mean of what labels make of every sample's derivative (n, c), given the values (N, c) of all equations."""
    if not dense(equations):
        return _krige_many(equations, values, prior)
    by, z, _ = likelihood(equations, values, prior)
    inner = by @ by.T * LABEL
    inner[np.diag_indices(len(inner))] += 1
    found: Matrix = LABEL * by.T @ np.linalg.solve(inner, z)
    return found


def _krige_many(equations: Equations, values: Matrix, prior: Prior) -> Matrix:
    """The same by conjugate gradients, with the drifts in a few functions of time."""
    rounds = np.arange(len(equations.ids))
    label = np.sqrt(LABEL) * prior.fading(rounds)
    own, together = _root(prior.drift(rounds)), _root(prior.drift(rounds, common=True))  # (T, k)
    ends = np.cumsum([0, *(columns.shape[1] for columns in equations.columns)])
    parts = list(zip(equations.ids, equations.columns, ends, label, own, together, strict=False))

    def spread(of: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """What equations say of every sample's label and drift, and of the drift in common."""
        labels, each, all_of_them = np.zeros(equations.samples), np.zeros((equations.samples, own.shape[1])), 0.0
        for ids, columns, first, fading, mine, whole in parts:
            here = columns @ of[first : first + columns.shape[1]]
            labels[ids] += here * fading
            each[ids] += here[:, None] * mine
            all_of_them = all_of_them + here.sum() * whole
        return labels, each, np.asarray(all_of_them)

    def covariance(of: Matrix) -> Matrix:
        labels, each, all_of_them = spread(of.ravel())
        told = [
            columns.T @ (labels[ids] * fading + each[ids] @ mine + all_of_them @ whole)
            for ids, columns, _, fading, mine, whole in parts
        ]
        found: Matrix = np.concatenate(told) + prior.noise * of.ravel()
        return found

    operator = LinearOperator((equations.count, equations.count), matvec=covariance, dtype=np.float64)
    solved = [cg(operator, column, rtol=1e-6, maxiter=_ITERATIONS)[0] for column in values.T]
    return np.column_stack([spread(one)[0] * np.sqrt(LABEL) for one in solved])


def _root(covariance: Matrix) -> Matrix:
    """A few columns whose products are nearly the covariance."""
    sizes, vectors = np.linalg.eigh(covariance)
    kept = np.arange(len(sizes))[::-1][:_FUNCTIONS]
    found: Matrix = vectors[:, kept] * np.sqrt(np.maximum(sizes[kept], 0))
    return found
