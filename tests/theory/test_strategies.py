"""The adaptive strategies against numerical minimisation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from crosshatch.errors import ConfigError
from crosshatch.theory.strategies import best_interval, best_step_size, positive_root

positive = st.floats(1e-3, 1e3)
whole = st.integers(1, 50)


def product(interval: float, *, gap: float, rho: float, delta_squared: float, eta: float, iterations: int) -> float:
    """Bound (17) times cost (19) with P = Q, written out for intervals that need not be whole."""
    gamma = 4 * gap / (eta * iterations) + 12 * interval * rho * eta * delta_squared
    gamma += 96 * interval**2 * rho**2 * eta**2 * delta_squared
    return gamma * (50 + 4 * 30 + 7 + 24 + 16) / interval * 3 * iterations


@pytest.mark.parametrize("seed", range(10))
def test_the_derived_interval_minimises_bound_times_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = {"gap": rng.uniform(1, 9), "rho": rng.uniform(0.5, 3), "delta_squared": rng.uniform(0.01, 1)}
    eta, iterations = rng.uniform(0.002, 0.01), 2000
    found = optimize.minimize_scalar(
        lambda q: product(q, **given, eta=eta, iterations=iterations), bounds=(0.01, iterations), method="bounded"
    )
    best = best_interval(**given, step_size=eta, iterations=iterations, rule="derived")
    assert best == pytest.approx(max(1, found.x), abs=0.51)


def test_the_printed_interval_has_another_power_of_the_step_size() -> None:
    given = {"gap": 2.0, "rho": 1.0, "delta_squared": 1e-4, "step_size": 0.01, "iterations": 1000}
    printed, derived = best_interval(**given), best_interval(**given, rule="derived")  # type: ignore[arg-type]
    assert printed == round(np.sqrt(2 / (24 * 1e-4 * 1e-4 * 1000)))
    assert derived == min(1000, round(np.sqrt(2 / (24 * 1e-6 * 1e-4 * 1000))))
    assert derived / printed == pytest.approx(10, rel=0.05)  # 1 / sqrt(eta)


def test_intervals_at_the_ends() -> None:
    assert best_interval(gap=1e-9, rho=1, delta_squared=1, step_size=0.1, iterations=100) == 1
    assert best_interval(gap=1.0, rho=1, delta_squared=0.0, step_size=0.1, iterations=100) == 100
    assert best_interval(gap=0.0, rho=1, delta_squared=0.0, step_size=0.1, iterations=100) == 1


@given(positive, positive, positive, whole, whole)
def test_the_root_is_the_papers(square: float, rho: float, delta_squared: float, ratio: int, q: int) -> None:
    p = ratio * q
    a, b, c = 24 * q**2 * p * rho**2 * delta_squared, 3 * p**2 * rho * delta_squared, p / 4 * square
    root = positive_root(square, rho, delta_squared, p, q)
    assert 3 * a * root**2 + 2 * b * root == pytest.approx(c, rel=1e-9)
    assert root > 0


@pytest.mark.parametrize(("p", "q"), [(1, 1), (4, 2), (20, 5), (50, 50)])
@pytest.mark.parametrize("square", [1e-4, 0.3, 50.0])
def test_the_step_size_minimises_the_loss_after_a_round(p: int, q: int, square: float) -> None:
    rho, noise = 1.7, 0.4

    def after(eta: float) -> float:  # right-hand side of (24)
        return 24 * eta**3 * q**2 * p * rho**2 * noise + 3 * eta**2 * p**2 * rho * noise - eta * p / 4 * square

    eta = best_step_size(square, rho=rho, delta_squared=noise, global_steps=p, local_steps=q)
    grid = np.linspace(0, 1 / (8 * p * rho), 2001)[1:]
    assert eta == pytest.approx(min(grid, key=after), abs=grid[1] - grid[0])


def test_the_step_size_falls_as_p_or_q_grow() -> None:
    def step(p: int, q: int) -> float:
        return best_step_size(0.5, rho=1.0, delta_squared=0.2, global_steps=p, local_steps=q)

    assert step(20, 5) < step(10, 5) < step(5, 5)
    assert step(20, 10) < step(10, 5) < step(4, 2)
    assert best_step_size(0.5, rho=2.0, delta_squared=0.0, global_steps=10, local_steps=5) == 1 / 160
    with pytest.raises(ConfigError, match="positive"):
        best_step_size(0.0, rho=1.0, delta_squared=0.2, global_steps=1, local_steps=1)
