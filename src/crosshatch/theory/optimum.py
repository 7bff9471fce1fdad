"""The best value f* of a linear model's objective, with a proof of how good it is.

    f(theta) = sum_n loss(x_n' theta, y_n) + l2/2 |theta|^2 + l1 |theta|_1

Ridge regression has a closed form. Everything else is solved by scikit-learn and then by accelerated proximal gradient
steps, until the duality gap, a bound on the distance to f*, is below a share of f(0) - f*.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosshatch.errors import ModelError
from crosshatch.task.losses import ClassWeighted, Logistic, Loss, SampleWeighted, Squared
from crosshatch.task.regulariser import Regulariser

Array = npt.NDArray[np.float64]
TOLERANCE = 1e-10  # of f(0) - f*
_STEPS = 50_000


@dataclass(frozen=True)
class Optimum:
    """The best weights found (d,), their value, the value of zero weights, and a bound on `value - f*`."""

    weights: Array
    value: float
    zero: float
    gap: float

    def suboptimality(self, value: float) -> float:
        """How far a value is from the best, relative to zero weights.

        >>> Optimum(np.zeros(1), value=2.0, zero=4.0, gap=0.0).suboptimality(2.5)
        0.25
        """
        span = self.zero - self.value
        return (value - self.value) / span if span > 0 else value - self.value  # zero weights may be the best


def find_optimum(x: Array, y: Array, loss: Loss, regulariser: Regulariser, *, tolerance: float = TOLERANCE) -> Optimum:
    """f* of features x (n, d) and labels y (n,) under the squared or the logistic loss.

    >>> best = find_optimum(np.eye(2), np.array([1.0, 2.0]), Squared(), Regulariser(l2=1.0))
    >>> best.weights.tolist(), best.value
    ([0.5, 1.0], 1.25)
    """
    if not isinstance(loss, Squared | Logistic):
        kind = f"the loss {loss.name!r}" + (" with weights" if isinstance(loss, ClassWeighted | SampleWeighted) else "")
        raise ModelError(f"the best value of the objective is not computed for {kind}: leave it out")
    problem = _Problem(x, y, isinstance(loss, Logistic), regulariser.l2, regulariser.l1)
    zero = problem.value(np.zeros(x.shape[1]))
    if isinstance(loss, Squared) and not regulariser.l1:
        return Optimum(weights := problem.ridge(), problem.value(weights), zero, problem.gap(weights))
    weights = problem.polish_active(problem.first(), tolerance, zero)
    return Optimum(weights, problem.value(weights), zero, problem.gap(weights))


@dataclass(frozen=True)
class _Problem:
    x: Array
    y: Array
    logistic: bool
    l2: float
    l1: float

    def value(self, theta: Array) -> float:
        z = self.x @ theta
        losses = np.logaddexp(0.0, z) - self.y * z if self.logistic else 0.5 * (z - self.y) ** 2
        return float(losses.sum() + 0.5 * self.l2 * theta @ theta + self.l1 * np.abs(theta).sum())

    def derivative(self, z: Array) -> Array:
        return (0.5 * (1.0 + np.tanh(0.5 * z)) if self.logistic else z) - self.y

    def gap(self, theta: Array) -> float:
        """f(theta) minus the dual's value at the losses' derivatives: never less than f(theta) - f*."""
        dual = self.derivative(self.x @ theta)
        slope = self.x.T @ dual
        if self.l2:
            penalty = float((np.maximum(np.abs(slope) - self.l1, 0.0) ** 2).sum()) / (2 * self.l2)
        else:
            # The dual is feasible only where |X'u| <= l1; without any penalty a gap is not to be had.
            steepest = float(np.abs(slope).max(initial=0.0))
            dual = dual * min(1.0, self.l1 / steepest) if steepest else dual
            penalty = 0.0
        if self.logistic:
            p = dual + self.y
            conjugate = float((_entropy(p) + _entropy(1.0 - p)).sum())
        else:
            conjugate = float((0.5 * dual**2 + dual * self.y).sum())
        return max(0.0, self.value(theta) + conjugate + penalty)

    def ridge(self) -> Array:
        """(X'X + l2)^-1 X'y, in the smaller of the two spaces."""
        samples, columns = self.x.shape
        if not self.l2:
            solved = np.linalg.lstsq(self.x, self.y)[0]
        elif columns <= samples:
            solved = np.linalg.solve(self.x.T @ self.x + self.l2 * np.eye(columns), self.x.T @ self.y)
        else:
            solved = self.x.T @ np.linalg.solve(self.x @ self.x.T + self.l2 * np.eye(samples), self.y)
        return np.asarray(solved, dtype=np.float64)

    def first(self) -> Array:
        from sklearn.exceptions import ConvergenceWarning  # late: it takes a second
        from sklearn.linear_model import ElasticNet, LogisticRegression

        samples, total = len(self.y), self.l1 + self.l2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap decides whether it was good enough
            if not self.logistic:
                model = ElasticNet(
                    alpha=total / samples, l1_ratio=self.l1 / total, fit_intercept=False, tol=1e-12, max_iter=20_000
                )
            elif not self.l1:
                model = LogisticRegression(
                    C=1 / self.l2 if self.l2 else np.inf, fit_intercept=False, tol=1e-12, solver="newton-cholesky",
                    max_iter=1000,
                )  # fmt: skip
            elif not self.l2:
                model = LogisticRegression(
                    C=1 / self.l1, l1_ratio=1.0, fit_intercept=False, tol=1e-8, solver="liblinear", max_iter=2000,
                    random_state=0,
                )  # fmt: skip
            else:
                return np.zeros(self.x.shape[1])
            model.fit(self.x, self.y)
        return np.asarray(model.coef_, dtype=np.float64).reshape(-1)

    def polish_active(self, theta: Array, tolerance: float, zero: float) -> Array:
        """Polish the few columns that matter, until no other asks to be let in; without an l1 term all matter."""
        if not self.l1:
            return self.polish(theta, tolerance, zero)
        active = np.zeros(len(theta), dtype=bool)
        for _ in range(100):
            slope = np.abs(self.x.T @ self.derivative(self.x @ theta))
            wanting = ~active & ((theta != 0) | (slope > (0.98 if not active.any() else 1.0) * self.l1))
            if not wanting.any():
                break
            active |= wanting
            theta = np.where(active, theta, 0.0)
            part = _Problem(self.x[:, active], self.y, self.logistic, self.l2, self.l1)
            theta[active] = part.polish(theta[active], tolerance / 10, zero)
        return theta

    def polish(self, theta: Array, tolerance: float, zero: float) -> Array:
        """Accelerated proximal gradient steps with restarts, until the gap is small or no longer shrinks."""
        small = min(self.x.shape)
        product = self.x @ self.x.T if self.x.shape[0] == small else self.x.T @ self.x
        smoothness = float(np.linalg.eigvalsh(product)[-1]) * (0.25 if self.logistic else 1.0) + self.l2
        step = 1.0 / smoothness
        extrapolated, momentum = theta, 1.0
        for i in range(_STEPS):
            if i % 50 == 0 and self.gap(theta) <= tolerance * (zero - self.value(theta)):
                break
            gradient = self.x.T @ self.derivative(self.x @ extrapolated) + self.l2 * extrapolated
            moved = extrapolated - step * gradient
            after = np.sign(moved) * np.maximum(np.abs(moved) - step * self.l1, 0.0)
            if float((extrapolated - after) @ (after - theta)) > 0:  # momentum points uphill: begin anew
                extrapolated, momentum = theta, 1.0
                continue
            following = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
            extrapolated = after + (momentum - 1.0) / following * (after - theta)
            theta, momentum = after, following
        return theta


def _entropy(p: Array) -> Array:
    """`p log p`, zero at zero."""
    kept = np.clip(p, 0.0, 1.0)
    return np.where(kept > 0, kept * np.log(np.where(kept > 0, kept, 1.0)), 0.0)
