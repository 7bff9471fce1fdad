"""Any number of workers gives the same bits, and the numbers are those of a simulation without them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import ConfigError
from crosshatch.simulator.state import VerticalState
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Logistic
from crosshatch.task.task import Task
from crosshatch.testing.federations import FederationCase, graph_cases, optimiser_cases, vertical_cases
from crosshatch.testing.transfer_federations import transfer_cases
from crosshatch.workers.crew import PIECES, InlineWorkers
from crosshatch.workers.ray_crew import RayWorkers
from tests.workers.hands import Hands, same_bits, simulate

CASES = (*vertical_cases(), *optimiser_cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numbers_and_bits(case: FederationCase) -> None:
    plain, inline = simulate(case), simulate(case, InlineWorkers())
    for mine, wanted in zip(inline.weights, plain.weights, strict=True):
        torch.testing.assert_close(mine, wanted, rtol=0, atol=1e-12)
    assert inline.meter == plain.meter
    assert inline.objective() == pytest.approx(plain.objective(), abs=1e-12)
    assert inline.objective(3) == pytest.approx(plain.objective(3), abs=1e-12)
    assert inline.strategies == plain.strategies
    for count in (1, 2, 3):
        assert same_bits(simulate(case, Hands(count)), inline)
    assert same_bits(simulate(case, InlineWorkers(threads=2)), inline)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_workers_that_begin_anew(case: FederationCase) -> None:
    """Half of all requests meet a worker that has just read its rows, and knows nothing else."""
    random = Random(7)
    crew = Hands(3, dies=lambda: random.random() < 0.5)
    assert same_bits(simulate(case, crew), simulate(case, InlineWorkers()))
    assert crew.replaced > 0


@pytest.mark.parametrize("case", [*graph_cases(), *transfer_cases()], ids=lambda case: case.name)
def test_refused(case: FederationCase) -> None:
    with pytest.raises(ConfigError, match=r"run\.workers.*: leave out run\.workers"):
        simulate(case, InlineWorkers(), rounds=0)


def test_more_workers_than_clients() -> None:
    case = CASES[0]
    assert max(silo.clients for silo in case.data.silos) < PIECES
    assert same_bits(simulate(case, Hands(PIECES)), simulate(case, InlineWorkers()))


@pytest.mark.parametrize(("workers", "threads"), [(0, 1), (-2, 1), (2, 0)])
def test_no_such_workers(workers: int, threads: int) -> None:
    """Refused before Ray is asked for."""
    with pytest.raises(ConfigError, match=r"must be at least 1"):
        RayWorkers(workers, threads=threads)


def test_going_on_from_a_snapshot() -> None:
    case = CASES[0]
    first, second = simulate(case, InlineWorkers(), rounds=2), simulate(case, Hands(2), rounds=0)
    second.restore(*first.snapshot())
    for _ in range(2):
        second.run_round()
    assert same_bits(second, simulate(case, InlineWorkers(), rounds=4))
    assert isinstance(second.state, VerticalState)


class _Own(nn.Module):
    """Neither a chain nor anything else that can be stacked."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, 11), nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.second(x) * self.first(x).sin().mean(1, keepdim=True)
        return out


def odd_case(algorithm: TDCD, *, held: bool) -> FederationCase:
    """Odd numbers of columns, samples, clients and outputs: hardly a slice of anything begins where torch's own do."""
    rng, samples = np.random.default_rng(3), 331
    columns, clients = (7, 13, 29), (5, 17, 11)
    silos = tuple(
        SiloData(
            f"silo{j}", x := torch.as_tensor(rng.normal(size=(samples, width)), dtype=torch.float32), x[:3],
            tuple(map(str, range(width))), rng.integers(0, count, samples), count,
        )
        for j, (width, count) in enumerate(zip(columns, clients, strict=True))
    )  # fmt: skip
    y = torch.as_tensor(rng.integers(0, 2, samples), dtype=torch.float32)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        width = 1 if algorithm.order == "sequential" else 5  # in turn there is no head
        mlp = nn.Sequential(nn.Linear(13, 9), nn.Tanh(), nn.Linear(9, width))
        blocks = (nn.Linear(7, width), mlp, _Own(29, width))
        head = nn.Sequential(nn.Linear(15, 7), nn.Tanh(), nn.Linear(7, 1))
    data = FederatedData(silos, y, y[:3], "binary", 2, "silo1" if held else None)
    fusion = Sum() if width == 1 else Head(head, 1)
    task = Task(blocks, fusion, Logistic(), silos=tuple(silo.name for silo in silos))
    return FederationCase("odd", data, task, algorithm)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("held", [False, True], ids=["labels shared", "labels held"])
@pytest.mark.parametrize(
    "algorithm",
    [TDCD(3, 0.1, 101), TDCD(3, 0.1, 101, order="sequential"), TDCD(1, 0.1, None)],
    ids=["at once", "in turn", "one step"],
)
def test_wherever_tensors_begin(algorithm: TDCD, held: bool, precision: torch.dtype) -> None:
    case = odd_case(algorithm, held=held)
    inline = simulate(case, InlineWorkers(), precision=precision)
    for crew in (Hands(2), Hands(3, apart=True), InlineWorkers(threads=2)):
        assert same_bits(simulate(case, crew, precision=precision), inline)
