"""The regulariser against autograd and against a numeric minimiser."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from torch import nn

from crosshatch.errors import ModelError
from crosshatch.local.visits.agent import Agent
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Logistic, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.trees import flatten

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


def test_free_biases_are_left_alone() -> None:
    block = nn.Sequential(nn.LSTM(2, 3, batch_first=True), nn.Linear(3, 1))  # four parameters, two of them biases; two
    regulariser = Regulariser(l2=0.5, l1=0.25, penalise_bias=False)
    task = Task((block, nn.Linear(2, 1, bias=False)), Sum(), Logistic(), regulariser)
    flat, free = task.initial()[0], task.free[0]
    assert free is not None
    assert task.free[1] is None
    assert all(one is None for one in replace(task, regulariser=Regulariser(l2=0.5)).free)
    named = list(task.layouts[0].views(flat).items())
    weights = torch.cat([p.flatten() for name, p in named if "weight" in name])
    assert float(task.penalty(0, flat)) == pytest.approx(float(Regulariser(0.5, 0.25).penalty(weights)), rel=1e-6)
    shrunk = regulariser.shrink(flat, 0.1, free)
    for (name, before), after in zip(named, task.layouts[0].views(shrunk).values(), strict=True):
        both = before.sign() * (before.abs() - 0.025).clamp(min=0) / 1.05
        torch.testing.assert_close(after, before if "bias" in name else both)


@pytest.mark.parametrize("block", [nn.Linear(3, 1), nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))])
def test_visits_leave_free_biases_alone(block: nn.Module) -> None:
    draw = np.random.default_rng(3)
    x, y = torch.as_tensor(draw.normal(size=(9, 3))), torch.as_tensor(draw.normal(size=9))
    regulariser = Regulariser(l2=0.5, l1=0.25, penalise_bias=False)
    block = block.double()
    task = Task((block,), Sum(), Squared(), regulariser)
    theta, mine = task.initial()[0], copy.deepcopy(block)
    scores = block(x).detach() + 1.0
    Agent(task, 0, x, y, width=1).visit(theta, scores, steps=3, step_size=0.01)
    for _ in range(3):
        loss = 0.5 * (mine(x)[:, 0] + 1.0 - y).square().sum()
        named = list(mine.named_parameters())
        for (name, p), slope in zip(named, torch.autograd.grad(loss, [p for _, p in named]), strict=True):
            moved = p.detach() - 0.01 * slope
            both = moved.sign() * (moved.abs() - 0.0025).clamp(min=0) / 1.005
            p.data.copy_(moved if "bias" in name else both)
    torch.testing.assert_close(theta, flatten(mine))
    torch.testing.assert_close(scores, mine(x).detach() + 1.0)
