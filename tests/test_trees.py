"""Flat vectors: every parameter has its place, and comes back as it was."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from crosshatch.trees import Layout, flatten, load
from tests.equivalence.modules import make_block


class Scalar(nn.Module):
    """A parameter without dimensions, such as a learned temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(2.0))
        self.last = nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(x) / self.temperature  # type: ignore[no-any-return]


def modules() -> list[nn.Module]:
    kinds = [make_block(kind, 4, 2) for kind in ("linear", "mlp", "convolution", "gated")]
    convolutions = nn.Sequential(nn.Conv2d(3, 4, (2, 3)), nn.GroupNorm(2, 4), nn.Conv2d(4, 2, 1))
    return [*kinds, convolutions, nn.Conv1d(2, 3, 2), nn.Conv3d(1, 2, 2), nn.LSTM(3, 2)]


@pytest.mark.parametrize("number", range(8))
def test_load_undoes_flatten(number: int) -> None:
    module = modules()[number]
    other = copy.deepcopy(module)
    for parameter in other.parameters():
        nn.init.constant_(parameter, 7.0)
    flat = flatten(module)
    assert flat.shape == (sum(p.numel() for p in module.parameters()),)
    load(other, flat)
    for ours, theirs in zip(other.parameters(), module.parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("number", range(8))
def test_views_are_views(number: int) -> None:
    """Every number of the vector is one of exactly one parameter; a change of one shows in the other."""
    module = modules()[number]
    layout = Layout.of(module)
    flat = torch.arange(float(layout.size))
    views = layout.views(flat)
    assert list(views) == [name for name, _ in module.named_parameters()]
    assert [v.shape for v in views.values()] == [p.shape for p in module.parameters()]
    assert sorted(torch.cat([v.flatten() for v in views.values()]).tolist()) == flat.tolist()
    for view in views.values():
        view.fill_(-1)
    assert (flat == -1).all()


@pytest.mark.parametrize("number", range(8))
def test_a_leading_axis_is_one_module_a_row(number: int) -> None:
    layout = Layout.of(modules()[number])
    rows = torch.arange(3.0 * layout.size).reshape(3, -1)
    together = layout.views(rows)
    for i, row in enumerate(rows):
        for name, view in layout.views(row).items():
            assert torch.equal(together[name][i], view)


def test_convolution_weights_lie_channels_last() -> None:
    convolution = nn.Conv2d(2, 1, (1, 2), bias=False)
    with torch.no_grad():
        convolution.weight.copy_(torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]]))  # channel 0: 1 2, channel 1: 3 4
    assert flatten(convolution).tolist() == [1, 3, 2, 4]


def test_tied_parameters_have_one_place() -> None:
    first = nn.Linear(2, 2, bias=False)
    second = nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    assert Layout.of(nn.Sequential(first, second)).size == 4


def test_flatten_copies() -> None:
    module = nn.Linear(2, 1)
    flat = flatten(module)
    before = module.weight.detach().clone()
    flat.zero_()
    assert torch.equal(module.weight, before)
    assert not flat.requires_grad


def test_a_parameter_without_dimensions_has_a_place() -> None:
    module = Scalar()
    flat = flatten(module)
    assert flat[0] == 2.0
    load(module, flat * 2)
    assert module.temperature == 4.0
