"""The regulariser against autograd and against a numeric minimiser."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from crosshatch.errors import ModelError
from crosshatch.task.regulariser import Regulariser

weights = st.floats(0, 10)


@settings(deadline=None)
@given(l2=weights, front=st.lists(st.integers(1, 3), max_size=2), p=st.integers(1, 8), seed=st.integers(0, 99))
def test_the_gradient_is_that_of_the_smooth_term(l2: float, front: list[int], p: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    flat = torch.randn(*front, p, generator=generator, dtype=torch.float64, requires_grad=True)
    penalty = Regulariser(l2=l2).penalty(flat)
    assert list(penalty.shape) == front
    (expected,) = torch.autograd.grad(penalty.sum(), flat)
    torch.testing.assert_close(Regulariser(l2=l2, l1=3.0).gradient(flat.detach()), expected)


def test_the_penalty_by_hand() -> None:
    flat = torch.tensor([[1.0, -2.0, 0.0], [0.0, 0.0, 3.0]])
    torch.testing.assert_close(Regulariser(l2=0.5, l1=2.0).penalty(flat), torch.tensor([1.25 + 6.0, 2.25 + 6.0]))


@settings(deadline=None, max_examples=50)
@given(theta=st.floats(-5, 5), l1=st.floats(0, 3), step=st.floats(0.001, 2))
def test_the_proximal_operator_minimises_its_objective(theta: float, l1: float, step: float) -> None:
    found = Regulariser(l1=l1).proximal(torch.tensor([theta], dtype=torch.float64), step).item()

    def objective(z: float) -> float:
        return 0.5 * (z - theta) ** 2 + step * l1 * abs(z)

    best = minimize_scalar(objective, bounds=(-6, 6), method="bounded", options={"xatol": 1e-10})
    assert objective(found) <= best.fun + 1e-12
    assert found == pytest.approx(best.x, abs=1e-4)


def test_small_parameters_become_exactly_zero() -> None:
    flat = torch.tensor([0.3, -0.3, 0.05, -0.05, 0.0])
    torch.testing.assert_close(Regulariser(l1=1.0).proximal(flat, 0.1), torch.tensor([0.2, -0.2, 0.0, 0.0, 0.0]))
    assert Regulariser(l2=1.0).proximal(flat, 0.1) is flat


@pytest.mark.parametrize("bad", [-1e-9, math.nan, math.inf])
def test_bad_weights_are_refused(bad: float) -> None:
    with pytest.raises(ModelError, match=r"model\.l1"):
        Regulariser(l1=bad)
    with pytest.raises(ModelError, match=r"model\.l2"):
        Regulariser(l2=bad)
