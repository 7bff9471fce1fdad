"""The cost of a local step against counts by hand."""

from __future__ import annotations

import torch
from torch import nn

from crosshatch.simulator.cost import step_cost
from crosshatch.task.blocks import LSTM
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Logistic, Squared
from crosshatch.task.task import Task


def test_linear_layer_by_hand() -> None:
    n, d, c = 6, 11, 1
    cost = step_cost(Task((nn.Linear(d, c, bias=False),), Sum(), Squared()), 0, torch.ones(n, d), torch.ones(n), (c,))
    assert cost.flops == 2 * n * d * c * 2  # outputs, and the weight's gradient
    assert cost.memory >= 4 * (2 * d * c + n * d + n)  # weights, gradients, samples, the others' sum


def test_lstm_is_seen_through() -> None:
    n, t, d, h = 5, 7, 3, 4
    cost = step_cost(Task((LSTM((t, d), 1, hidden=h),), Sum(), Logistic()), 0, torch.ones(n, t, d), torch.ones(n), (1,))
    forward = 2 * n * t * 4 * h * (d + h) + 2 * n * h
    assert 2 * forward < cost.flops < 3.1 * forward


def test_a_head_counts_where_it_is_used_and_more_where_it_is_trained() -> None:
    blocks = (nn.Linear(4, 3), nn.Linear(4, 3))
    task = Task(blocks, Head(nn.Linear(6, 1), holder=0), Squared())
    x, y = torch.ones(5, 4), torch.ones(5)
    holder, other = (step_cost(task, silo, x, y, (3, 3)) for silo in (0, 1))
    assert other.flops > step_cost(Task((nn.Linear(4, 1),), Sum(), Squared()), 0, x, y, (1,)).flops
    assert holder.flops > other.flops
    assert holder.memory > other.memory
