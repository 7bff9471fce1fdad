"""Where weights lie in memory: as a resumed run has them, without a copy where they already do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.graphs import Graph
from crosshatch.local.forward import ALIGNMENT, aligned
from crosshatch.simulator.graph.graph_state import GraphState
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.state import VerticalState
from tests.equivalence.hospitals import hospitals, model
from tests.simulator.agents_case import make

RING = Graph("ring")
MADE: dict[str, Callable[[], Simulator]] = {
    "tdcd": lambda: Simulator(hospitals([20], per_device=2), model(), TDCD(2, 0.1, 10), threads=1),
    "hsgd": lambda: Simulator(hospitals([9, 15, 8], per_device=2), model(), HSGD(2, 2, 0.1, 0.5), threads=1),
    "stcd": lambda: make(STCD(2, graph=RING)),
    "mtcd": lambda: make(MTCD(3, 2, 0.01, 2, RING)),
    "dcpa": lambda: make(DCPA(graph=RING)),
}


def shifted(tensor: Tensor) -> Tensor:
    """The same numbers four or eight bytes behind a multiple of the alignment."""
    moved = tensor.new_empty(tensor.numel() + 1)[1:].view(tensor.shape)
    return moved.copy_(tensor)


def tensors_of(simulator: Simulator) -> list[Tensor]:
    """Everything rounds compute with, as it lies."""
    course = simulator.state
    if isinstance(course, VerticalState):
        return [weights for blocks in course.blocks for weights in blocks.base]
    assert isinstance(course, GraphState)
    state: Any = course.values
    values = [getattr(state, field.name) for field in fields(state)]
    return [value for value in values if isinstance(value, Tensor)]


def shift(simulator: Simulator) -> None:
    """Move everything away from its alignment."""
    course = simulator.state
    if isinstance(course, VerticalState):
        once = {id(b.base): replace(b, base=tuple(map(shifted, b.base))) for b in course.blocks}
        course.blocks = tuple(once[id(b.base)] for b in course.blocks)
        return
    assert isinstance(course, GraphState)
    state: Any = course.values
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, Tensor):
            setattr(state, field.name, shifted(value))


@pytest.mark.parametrize("kind", MADE)
def test_everything_is_aligned_and_as_it_was(kind: str) -> None:
    simulator = MADE[kind]()
    for _ in range(2):
        simulator.run_round()
    before = [tensor.clone() for tensor in tensors_of(simulator)]
    shift(simulator)
    assert all(tensor.data_ptr() % ALIGNMENT for tensor in tensors_of(simulator))
    simulator.align()
    after = tensors_of(simulator)
    assert not any(tensor.data_ptr() % ALIGNMENT for tensor in after)
    assert all(map(torch.equal, before, after))
    if kind == "hsgd":  # the groups were just averaged: what they have in common is kept once
        assert len({tensor.data_ptr() for tensor in after}) == 2


@pytest.mark.parametrize("kind", MADE)
def test_nothing_moves_that_lies_well(kind: str) -> None:
    simulator = MADE[kind]()
    simulator.align()
    for _ in range(3):
        simulator.run_round()
        simulator.align()
        before = tensors_of(simulator)
        simulator.align()
        assert all(one is other for one, other in zip(before, tensors_of(simulator), strict=True))


@pytest.mark.parametrize("kind", MADE)
def test_goes_on_as_if_restored(kind: str) -> None:
    simulator, restored = MADE[kind](), MADE[kind]()
    for _ in range(2):
        simulator.run_round()
    shift(simulator)
    simulator.align()
    restored.restore(*simulator.snapshot())
    for _ in range(2):
        simulator.run_round()
        restored.run_round()
    assert all(map(torch.equal, tensors_of(simulator), tensors_of(restored)))


def test_columns_of_a_matrix_are_laid_in_a_row() -> None:
    column = torch.arange(64.0).view(16, 4)[:, 0]
    assert column.data_ptr() % ALIGNMENT == 0
    assert aligned(column).is_contiguous()
    assert torch.equal(aligned(column), column)
