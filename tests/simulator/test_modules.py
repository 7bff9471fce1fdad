"""Any module: what users write that the built-in blocks do not have."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.schedules import Constant
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.trees import Layout
from tests.equivalence.modules import Gated
from tests.simulator.small import small


class Partly(nn.Module):
    """Two layers; the first may be frozen, or not be used at all."""

    def __init__(self, *, frozen: bool = False, used: bool = True) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.last = nn.Linear(2, 1)
        self.used = used
        self.first.requires_grad_(not frozen)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(self.first(x)) if self.used else x)  # type: ignore[no-any-return]


class Tied(nn.Module):
    """One matrix used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.there = nn.Linear(2, 2, bias=False)
        self.back = nn.Linear(2, 2, bias=False)
        self.back.weight = self.there.weight
        self.last = nn.Linear(2, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.back(torch.tanh(self.there(x))))  # type: ignore[no-any-return]


def one_round(block: nn.Module, steps: int) -> dict[str, Tensor]:
    """The parameters of silo a's block after a round of FedBCD on silos a and b."""
    data = small(clients=(1, 1)).data
    task = Task((block, nn.Linear(2, 1)), Sum(), Squared())
    simulator = Simulator(data, task, FedBCD(steps, Constant(0.1)), precision=torch.float64, threads=1)
    simulator.run_round()
    return Layout.of(block).views(simulator.weights[0])


@pytest.mark.parametrize("steps", [1, 2])
def test_frozen_parameters_stay(steps: int) -> None:
    block = Partly(frozen=True).double()
    after = one_round(block, steps)
    assert torch.equal(after["first.weight"], block.first.weight)
    assert not torch.equal(after["last.weight"], block.last.weight)


@pytest.mark.parametrize("steps", [1, 2])
def test_unused_parameters_stay(steps: int) -> None:
    block = Partly(used=False).double()
    after = one_round(block, steps)
    assert torch.equal(after["first.weight"], block.first.weight)
    assert not torch.equal(after["last.weight"], block.last.weight)


@pytest.mark.parametrize("steps", [1, 3])
def test_tied_parameters_move_together(steps: int) -> None:
    block = Tied().double()
    after = one_round(block, steps)
    assert set(after) == {"there.weight", "last.weight", "last.bias"}
    data = small(clients=(1, 1)).data
    naive = copy.deepcopy(block)
    with torch.random.fork_rng():
        other = nn.Linear(2, 1).double()
    task = Task((copy.deepcopy(block), other), Sum(), Squared())
    simulator = Simulator(data, task, FedBCD(steps, Constant(0.1)), precision=torch.float64, threads=1)
    simulator.run_round()
    rest = other(data.silos[1].train).detach()
    for _ in range(steps):
        loss = 0.5 * ((naive(data.silos[0].train) + rest)[:, 0] - data.y_train).square().mean()
        gradients = torch.autograd.grad(loss, list(naive.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(naive.parameters(), gradients, strict=True):
                parameter.sub_(gradient, alpha=0.1)
    found = Layout.of(block).views(simulator.weights[0])
    for name, parameter in naive.named_parameters():
        assert torch.allclose(found[name], parameter, rtol=0, atol=1e-7)


def with_dropout() -> Simulator:
    """A simulator whose blocks drop half of their inputs."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        blocks = [nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1)) for _ in range(2)]
    task = Task(tuple(blocks), Sum(), Squared())
    return Simulator(small(clients=(2, 2)).data, task, TDCD(2, Constant(0.1)), threads=1)


def test_dropout_is_off_when_the_model_is_evaluated() -> None:
    simulator = with_dropout()
    assert simulator.objective() == simulator.objective()


def test_dropout_follows_the_seed() -> None:
    with torch.random.fork_rng():
        first, second = with_dropout(), with_dropout()
        first.run_round()
        second.run_round()
        assert torch.equal(first.weights[0], second.weights[0])


@pytest.mark.parametrize("steps", [1, 3])
def test_threads_do_not_mix_the_clients_heads(steps: int) -> None:
    """Every client of the holder trains a head of its own; two threads work on different clients at once."""
    rng = np.random.default_rng(0)
    samples, clients = 80, 20
    silos = []
    for name in "ab":
        x = torch.as_tensor(rng.normal(size=(samples, 4)))
        silos.append(SiloData(name, x, x, ("x",) * 4, rng.integers(0, clients, samples), clients))
    y = torch.as_tensor(rng.normal(size=samples))
    data = FederatedData(tuple(silos), y, y, "regression", 1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        blocks = (Gated(4, 3).double(), Gated(4, 3).double())
        head = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    task = Task(blocks, Head(head, 0), Squared())
    threads_before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2):
            simulator = Simulator(data, task, TDCD(steps, Constant(0.1)), precision=torch.float64, threads=threads)
            for _ in range(3):
                simulator.run_round()
            found.append(simulator.weights)
    finally:
        torch.set_num_threads(threads_before)
    for one, two in zip(*found, strict=True):
        assert torch.allclose(one, two, rtol=0, atol=1e-12)
    assert all(isinstance(p, nn.Parameter) for p in head.parameters())
