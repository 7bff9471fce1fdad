"""f* is that of the closed form, of scikit-learn and of cvxpy, and the gap bounds what is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, Ridge

from crosshatch.errors import ModelError
from crosshatch.task.losses import CrossEntropy, Logistic, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.theory.optimum import find_optimum

Array = npt.NDArray[np.float64]
PENALTIES = [(1.0, 0.0), (0.0, 1.0), (0.0, 5.0), (1.0, 2.0), (0.2, 0.1)]


def problem(samples: int = 40, columns: int = 8) -> tuple[Array, Array]:
    random = np.random.default_rng(5)
    x = random.standard_normal((samples, columns))
    return x, 2 * x[:, 0] - x[:, 1] + random.standard_normal(samples)


def by_cvxpy(x: Array, y: Array, l2: float, l1: float, *, logistic: bool) -> float:
    cp = pytest.importorskip("cvxpy")
    theta = cp.Variable(x.shape[1])
    z: Any = x @ theta
    loss = cp.sum(cp.logistic(z) - cp.multiply(y, z)) if logistic else cp.sum_squares(z - y) / 2
    best = cp.Problem(cp.Minimize(loss + l2 / 2 * cp.sum_squares(theta) + l1 * cp.norm1(theta)))
    return float(best.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize(("l2", "l1"), PENALTIES)
@pytest.mark.parametrize("logistic", [False, True])
def test_agrees_with_cvxpy(logistic: bool, l2: float, l1: float) -> None:
    x, y = problem()
    labels = (y > 0).astype(float) if logistic else y
    found = find_optimum(x, labels, Logistic() if logistic else Squared(), Regulariser(l2=l2, l1=l1))
    assert found.value == pytest.approx(by_cvxpy(x, labels, l2, l1, logistic=logistic), rel=1e-7)
    assert 0 <= found.gap <= 1e-9 * (found.zero - found.value)
    assert found.zero == pytest.approx(40 * np.log(2) if logistic else (y**2).sum() / 2)


@pytest.mark.parametrize("columns", [8, 60])
def test_ridge_agrees_with_scikit_learn(columns: int) -> None:
    x, y = problem(columns=columns)
    reference = Ridge(alpha=3.0, fit_intercept=False, solver="svd").fit(x, y)
    found = find_optimum(x, y, Squared(), Regulariser(l2=3.0))
    np.testing.assert_allclose(found.weights, reference.coef_, rtol=1e-9, atol=1e-12)


def test_sparse_ones_agree_with_scikit_learn() -> None:
    x, y = problem()
    lasso = Lasso(alpha=4.0 / 40, fit_intercept=False, tol=1e-14, max_iter=100_000).fit(x, y)
    np.testing.assert_allclose(find_optimum(x, y, Squared(), Regulariser(l1=4.0)).weights, lasso.coef_, atol=1e-7)
    binary = (y > 0).astype(float)
    saga = LogisticRegression(C=0.5, l1_ratio=1.0, solver="saga", fit_intercept=False, tol=1e-12, max_iter=100_000)
    found = find_optimum(x, binary, Logistic(), Regulariser(l1=2.0)).weights
    np.testing.assert_allclose(found, saga.fit(x, binary).coef_[0], atol=1e-6)


def test_the_gap_bounds_the_distance_of_a_poor_answer() -> None:
    x, y = problem()
    poor = find_optimum(x, y, Squared(), Regulariser(l1=4.0), tolerance=0.5)
    best = find_optimum(x, y, Squared(), Regulariser(l1=4.0))
    assert poor.value - best.value <= poor.gap + 1e-12


def test_without_a_penalty_it_is_least_squares() -> None:
    x, y = problem()
    found = find_optimum(x, y, Squared(), Regulariser())
    np.testing.assert_allclose(found.weights, np.linalg.lstsq(x, y)[0], rtol=1e-10)


def test_other_losses_are_refused() -> None:
    x, y = problem()
    with pytest.raises(ModelError, match="'cross_entropy'"):
        find_optimum(x, y, CrossEntropy(), Regulariser())


@pytest.mark.parametrize("logistic", [False, True])
def test_zero_weights_may_be_the_best(logistic: bool) -> None:
    x, y = problem()
    labels = (y > 0).astype(float) if logistic else y
    found = find_optimum(x, labels, Logistic() if logistic else Squared(), Regulariser(l1=1e4))
    assert not found.weights.any()
    assert found.value == found.zero
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    assert found.suboptimality(found.value) == 0


def test_many_columns() -> None:
    x, y = problem(samples=20, columns=300)
    found = find_optimum(x, (y > 0).astype(float), Logistic(), Regulariser(l1=0.5))
    assert found.gap <= 1e-9 * (found.zero - found.value)
    assert 0 < np.count_nonzero(found.weights) <= 20
