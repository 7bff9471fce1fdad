"""Groups whose local steps are computed in one go: the numbers of one group after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.tiered import Tiered
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm, Batch, Blocks, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.protocol.batches import GivenBatches, Ids
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.testing.check_federation import check_rounds
from crosshatch.testing.federations import FederationCase
from tests.equivalence.hospitals import hospitals, model
from tests.equivalence.modules import make_block
from tests.equivalence.naive_groups import Weights, hsgd, jfl

DATA = hospitals([9, 15, 8], per_device=2)
HELD = hospitals([9, 15, 8], labels="hospital")


def task(kind: str, fusion: str, *, l2: float = 0.0) -> Task:
    """A network at the hospital, a block of any kind at the devices."""
    torch.manual_seed(4)
    width = 2 if fusion == "head" else 1
    blocks = (make_block("mlp", 4, width), make_block(kind, 3, width))
    fused = Head(nn.Linear(4, 1), 0) if fusion == "head" else Sum()
    return Task(blocks, fused, Squared(), Regulariser(l2=l2), silos=("hospital", "devices"))


def run(data: FederatedData, task: Task, algorithm: Algorithm, *, rounds: int = 4, **options: Any) -> Simulator:
    settings = {"threads": 1} | options
    simulator = Simulator(data, task, algorithm, seed=3, precision=torch.float64, **settings)
    for _ in range(rounds):
        simulator.run_round()
    return simulator


def draw_devices(data: FederatedData, rounds: int) -> tuple[tuple[GivenBatches, ...], list[list[Ids]]]:
    """Three devices of every group in every round: as the engine takes them, and the rows they hold."""
    return _draw(data, rounds, lambda rows: np.unique(data.silos[1].owners[rows], return_inverse=True)[1], 3)


def draw_samples(data: FederatedData, rounds: int) -> tuple[tuple[GivenBatches, ...], list[list[Ids]]]:
    """Five samples of every group in every round, not those of whole devices."""
    return _draw(data, rounds, lambda rows: np.arange(len(rows)), 5)


def _draw(
    data: FederatedData, rounds: int, numbered: Callable[[Ids], Ids], count: int
) -> tuple[tuple[GivenBatches, ...], list[list[Ids]]]:
    random, given, rows = np.random.default_rng(8), [], [[] for _ in range(rounds)]  # type: ignore[var-annotated]
    for group in range(3):
        mine = np.flatnonzero(data.groups == group)
        numbers = numbered(mine)
        drawn = [random.choice(int(numbers.max()) + 1, count, replace=False) for _ in range(rounds)]
        given.append(GivenBatches(np.stack(drawn)[:, None, :].astype(np.int64)))
        for r, chosen in enumerate(drawn):
            rows[r].append(mine[np.isin(numbers, chosen)])
    return tuple(given), rows


@pytest.mark.parametrize("kind", ["mlp", "convolution", "gated"])
@pytest.mark.parametrize("fusion", ["head", "sum"])
@pytest.mark.parametrize(("held", "l2"), [(False, 0.0), (True, 0.3)])
class TestAgainstThePaper:
    """The local steps of all groups in one go, against loops that know of no such thing."""

    def test_hsgd(self, kind: str, fusion: str, held: bool, l2: float) -> None:
        one, data = task(kind, fusion, l2=l2), HELD if held else DATA
        given, rows = draw_devices(data, 4)
        wanted = hsgd(one, data, rows, p=1, q=1, eta=0.1)
        ours = run(data, one, HSGD(1, 1, 0.1, 0.4), batches=given)
        torch.testing.assert_close(torch.cat(ours.weights), torch.cat(wanted), rtol=0, atol=1e-12)

    def test_jfl(self, kind: str, fusion: str, held: bool, l2: float) -> None:
        one, data = task(kind, fusion, l2=l2), HELD if held else DATA
        given, rows = draw_devices(data, 4)
        ours = run(data, one, JFL(1, 0.1, 0.4), batches=given)
        wanted = jfl(one, data, rows, eta=0.1)
        torch.testing.assert_close(torch.cat(ours.weights), torch.cat(wanted), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("weights", ["at_work", "equal", "samples"])
    def test_tiers(self, kind: str, fusion: str, held: bool, l2: float, weights: Weights) -> None:
        one, data = task(kind, fusion, l2=l2), HELD if held else DATA
        given, rows = draw_samples(data, 4)
        ours = run(data, one, Tiered("H(1) V(1) H(1)", 0.1, 5, weights=weights), batches=given)
        wanted = hsgd(one, data, rows, p=1, q=1, eta=0.1, weights=weights)
        torch.testing.assert_close(torch.cat(ours.weights), torch.cat(wanted), rtol=0, atol=1e-12)


@dataclass(frozen=True)
class Hasty(HSGD):
    """Says it takes one step, and takes as many as asked for, some of them from where it has got to."""

    steps: tuple[int, ...] = (1,)

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.select(self.fraction, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        for steps in self.steps:
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(steps, 0.1))
        return fed.average_groups(fed.average(blocks, batch, weights="at_work"), round=r)


@dataclass(frozen=True)
class Piecemeal(HSGD):
    """Averages the clients between its steps, and takes all silos at once or one after the other."""

    at_once: bool = True

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.select(self.fraction, round=r)
        blocks = fed.broadcast(blocks, batch)
        embeddings = fed.embed(blocks, batch)
        for silo in (0, 1):
            to = None if self.at_once else silo
            frozen = fed.share(embeddings, batch, to=to)
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(1, 0.1), only=to)
            blocks = fed.broadcast(fed.average(blocks, batch, weights="at_work"), batch)
            if to == 0:
                embeddings = fed.embed(blocks, batch, only=0, known=embeddings)
        return fed.average_groups(blocks, round=r)


@pytest.mark.parametrize("kind", ["mlp", "convolution"])
@pytest.mark.parametrize(
    "algorithm", [Piecemeal(1, 1, 0.1, 0.4), Piecemeal(1, 1, 0.1, 0.4, False), Hasty(1, 1, 0.1, 0.4, (3,)),
                  Hasty(1, 1, 0.1, 0.4, (1, 1)), Hasty(1, 1, 0.1, 0.4, (2, 1))],
)  # fmt: skip
def test_texts_of_their_own(kind: str, algorithm: Algorithm) -> None:
    case = FederationCase("", DATA, task(kind, "head"), algorithm, seed=3)
    check_rounds(partial(Simulator, threads=1, precision=torch.float64), case, rounds=4)


def test_a_checkpoint_holds_equal_blocks_once() -> None:
    algorithm = HSGD(1, 1, 0.1, 0.4)
    straight = run(DATA, model(), algorithm, rounds=5)
    first = run(DATA, model(), algorithm, rounds=2)
    tensors, plain = first.snapshot()
    assert sorted(name for name in tensors if name.startswith("block")) == ["block.0.0", "block.0.1"]
    second = run(DATA, model(), algorithm, rounds=0)
    second.restore(tensors, plain)
    for _ in range(3):
        second.run_round()
    assert all(map(torch.equal, straight.weights, second.weights))


def test_threads_change_no_number() -> None:
    one = task("convolution", "head")
    single, double = (run(DATA, one, HSGD(1, 1, 0.1, 0.4), threads=threads) for threads in (1, 2))
    torch.testing.assert_close(torch.cat(single.weights), torch.cat(double.weights), rtol=0, atol=1e-13)


@pytest.mark.parametrize("after", range(5))
def test_regions_go_on_from_a_checkpoint_to_the_same_bits(after: int) -> None:
    data = hospitals([6, 8, 4, 6], per_device=2, shape=(2, 2))
    algorithm = Tiered("H(8) H(4) V(2) H(2)", 0.1, fraction=0.6, weights="at_work")
    make = partial(Simulator, data, model(), algorithm, seed=3, strategy="gram", threads=1)
    straight, first, second = make(), make(), make()
    for simulator, rounds in ((straight, 6), (first, after)):
        for _ in range(rounds):
            simulator.run_round()
    second.restore(*first.snapshot())
    for _ in range(6 - after):
        second.run_round()
    assert all(map(torch.equal, straight.weights, second.weights))
