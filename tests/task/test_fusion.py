"""Sums and heads against formulas written out by hand and autograd through all modules."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.task import Task
from crosshatch.trees import flatten

ROWS = 6
LABELS: dict[str, Tensor] = {
    "squared": torch.linspace(-1, 1, ROWS, dtype=torch.float64),
    "logistic": torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], dtype=torch.float64),
    "cross_entropy": torch.tensor([0, 2, 1, 1, 0, 2]),
}
LOSSES: list[Loss] = [Squared(), Logistic(), CrossEntropy()]


def embeddings(*widths: int) -> list[Tensor]:
    draw = torch.Generator().manual_seed(len(widths))
    return [torch.randn(ROWS, width, generator=draw, dtype=torch.float64) for width in widths]


def head(width: int, scores: int) -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(width, 4), nn.Tanh(), nn.Linear(4, scores)).double()


@pytest.mark.parametrize("silos", [1, 2, 3, 5])
def test_sum(silos: int) -> None:
    fusion, values = Sum(), embeddings(*[2] * silos)
    total = torch.zeros(ROWS, 2, dtype=torch.float64)
    for one in values:
        total = total + one
    torch.testing.assert_close(fusion.scores(fusion.join_all(values), None), total)
    for j, others in enumerate(fusion.others(values, range(silos))):
        by_hand = torch.zeros(ROWS, 2, dtype=torch.float64)
        for i, one in enumerate(values):
            by_hand = by_hand + (one if i != j else 0)
        torch.testing.assert_close(others, by_hand)
        torch.testing.assert_close(fusion.join(values[j], others, fusion.columns([2] * silos, j)), total)


def test_others_of_a_sum_take_no_differences() -> None:
    """A huge embedding leaves no rounding behind in its own silo's part."""
    values = [torch.tensor([[1e30]]), torch.tensor([[0.1]]), torch.tensor([[0.2]])]
    assert torch.equal(Sum().others(values, [0])[0], torch.tensor([[0.1]]) + torch.tensor([[0.2]]))


def test_head_sees_embeddings_in_the_order_of_silos() -> None:
    widths, fusion = (3, 1, 2), Head(head(6, 2), holder=1)
    values = embeddings(*widths)
    assert [fusion.columns(widths, j) for j in range(3)] == [(0, 3), (3, 4), (4, 6)]
    beside = torch.cat(values, dim=1)
    for j, others in zip((2, 0), fusion.others(values, [2, 0]), strict=True):
        assert others.shape[1] == fusion.others_width(widths, j)
        low, high = fusion.columns(widths, j)
        others = others.clone()
        others[:, low:high] = torch.nan  # its own columns are not looked at
        assert torch.equal(fusion.join(values[j], others, (low, high)), beside)
    expected = fusion.module(beside)
    assert torch.equal(fusion.scores(fusion.join_all(values), fusion.under(flatten(fusion.module))), expected)


def test_widths_of_the_others_part() -> None:
    assert [Sum().others_width((3, 3), j) for j in range(2)] == [3, 3]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("kind", ["sum", "head"])
def test_derivative_is_that_of_autograd_through_everything(kind: str, loss: Loss) -> None:
    scores = loss.scores(3)
    widths = (scores,) * 3 if kind == "sum" else (3, 1, 2)
    module = head(6, scores)
    fusion: Fusion = Sum() if kind == "sum" else Head(module, holder=2)
    blocks = tuple(nn.Linear(2, width).double() for width in widths)
    task, y = Task(blocks, fusion, loss), LABELS[loss.name]
    values = embeddings(*widths)
    leaves = [value.clone().requires_grad_() for value in values]
    total = leaves[0] + leaves[1] + leaves[2] if kind == "sum" else module(torch.cat(leaves, dim=1))
    wanted = torch.autograd.grad(loss.value(total, y).sum(), leaves)
    flat = task.head_in(task.initial())
    assert (flat is None) == (kind == "sum")
    torch.testing.assert_close(task.combine(values, flat), total.detach())
    for j, others in enumerate(fusion.others(values, range(3))):
        found = task.derivative(values[j], others, y, columns=fusion.columns(widths, j), head=flat)
        torch.testing.assert_close(found, wanted[j])


def test_task_knows_its_head() -> None:
    module, blocks = nn.Linear(4, 1), (nn.Linear(3, 2), nn.Linear(3, 2))
    with_head, summed = Task(blocks, Head(module, 1), Squared()), Task(blocks, Sum(), Squared())
    assert (with_head.head, with_head.head_holder) == (module, 1)
    assert (summed.head, summed.head_holder, summed.head_layout) == (None, None, None)
    assert [with_head.modules_of(j) for j in range(2)] == [[blocks[0]], [blocks[1], module]]
    held = with_head.head_in(with_head.initial())
    assert held is not None
    assert torch.equal(held, flatten(module))
    assert summed.head_in(summed.initial()) is None
