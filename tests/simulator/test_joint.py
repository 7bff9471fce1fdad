"""One pass over all groups stands for one in each: the same numbers, and only where the groups' average follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from crosshatch.exchanges import Algorithm, Batch, Blocks, Embeddings, Federation, Frozen
from crosshatch.protocol.batches import GivenBatches, Ids
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical import embedding, groups, joint
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import GroupedFederation
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
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


def run(
    data: FederatedData, task: Task, algorithm: Algorithm, *, together: bool, rounds: int = 4, **options: Any
) -> Simulator:
    settings = {"threads": 1} | options
    simulator = Simulator(data, task, algorithm, seed=3, precision=torch.float64, **settings)
    assert isinstance(simulator.federation, GroupedFederation)
    if not together:
        simulator.federation.one_step = False
    for _ in range(rounds):
        simulator.run_round()
    return simulator


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The groups of every joint pass."""
    seen: list[int] = []

    def listen(members: Sequence[SimulatedFederation], *rest: Any) -> tuple[embedding.Embeddings, ...]:
        seen.append(len(members))
        return joint.embed_jointly(members, *rest)

    monkeypatch.setattr(groups, "embed_jointly", listen)
    return seen


@pytest.mark.parametrize(
    "algorithm",
    [
        HSGD(1, 1, 0.1, 0.4),
        JFL(1, 0.1, 0.4),
        Tiered("H(1) V(1) H(1)", 0.1, 5),
        Tiered("H(1) V(1) H(1)", 0.1, 5, weights="samples"),
    ],
)
@pytest.mark.parametrize("kind", ["mlp", "convolution", "gated"])
@pytest.mark.parametrize("fusion", ["head", "sum"])
@pytest.mark.parametrize(("held", "l2"), [(False, 0.0), (True, 0.3)])
def test_one_pass_for_all_groups_is_one_in_each(
    algorithm: Algorithm, kind: str, fusion: str, held: bool, l2: float, passes: list[int]
) -> None:
    model, data = task(kind, fusion, l2=l2), HELD if held and isinstance(algorithm, Tiered) else DATA
    together, apart = (run(data, model, algorithm, together=which) for which in (True, False))
    assert passes == [3] * 4
    torch.testing.assert_close(torch.cat(together.weights), torch.cat(apart.weights), rtol=0, atol=1e-13)
    assert together.meter.snapshot() == apart.meter.snapshot()
    assert together.seconds == apart.seconds


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
    """The engine's joint pass, and its passes group by group, against loops that know of neither."""

    @pytest.mark.parametrize("together", [True, False])
    def test_hsgd(self, kind: str, fusion: str, held: bool, l2: float, together: bool, passes: list[int]) -> None:
        one, data = task(kind, fusion, l2=l2), HELD if held else DATA
        given, rows = draw_devices(data, 4)
        wanted = hsgd(one, data, rows, p=1, q=1, eta=0.1)
        ours = run(data, one, HSGD(1, 1, 0.1, 0.4), together=together, batches=given)
        assert passes == [3] * 4 * together
        torch.testing.assert_close(torch.cat(ours.weights), torch.cat(wanted), rtol=0, atol=1e-12)

    def test_jfl(self, kind: str, fusion: str, held: bool, l2: float, passes: list[int]) -> None:
        one, data = task(kind, fusion, l2=l2), HELD if held else DATA
        given, rows = draw_devices(data, 4)
        ours = run(data, one, JFL(1, 0.1, 0.4), together=True, batches=given)
        assert passes == [3] * 4
        wanted = jfl(one, data, rows, eta=0.1)
        torch.testing.assert_close(torch.cat(ours.weights), torch.cat(wanted), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("weights", ["at_work", "equal", "samples"])
    def test_tiers(self, kind: str, fusion: str, held: bool, l2: float, weights: Weights, passes: list[int]) -> None:
        one, data = task(kind, fusion, l2=l2), HELD if held else DATA
        given, rows = draw_samples(data, 4)
        ours = run(data, one, Tiered("H(1) V(1) H(1)", 0.1, 5, weights=weights), together=True, batches=given)
        assert passes == [3] * 4
        wanted = hsgd(one, data, rows, p=1, q=1, eta=0.1, weights=weights)
        torch.testing.assert_close(torch.cat(ours.weights), torch.cat(wanted), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "l1"),
    [(HSGD(2, 1, 0.1, 0.4), 0.0), (HSGD(2, 2, 0.1, 0.4), 0.0), (HSGD(1, 1, 0.1, 0.4), 0.01), (HSGD(1, 1, 0.1), 0.0)],
)
def test_no_joint_pass_where_it_would_not_serve(algorithm: Algorithm, l1: float, passes: list[int]) -> None:
    one = task("convolution", "head")
    run(DATA, replace(one, regulariser=Regulariser(l1=l1)), algorithm, together=True)
    assert passes == []


def test_masks_are_a_groups_own(passes: list[int]) -> None:
    one = task("mlp", "head")
    dropping = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.Linear(3, 2))
    run(DATA, replace(one, blocks=(one.blocks[0], dropping)), HSGD(1, 1, 0.1, 0.4), together=True)
    assert passes == []


@dataclass(frozen=True)
class Forgetful(HSGD):
    """Says it averages the groups after every step, and does so after every second."""

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.select(self.fraction, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        blocks = fed.descend(blocks, batch, frozen, steps=1, step_size=0.1)
        blocks = fed.average(blocks, batch, weights="at_work")
        return fed.average_groups(blocks, round=r) if r % 2 else blocks


@dataclass(frozen=True)
class Hasty(HSGD):
    """Says it takes one step, and takes as many as asked for, some of them from where it has got to."""

    steps: tuple[int, ...] = (1,)

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.select(self.fraction, round=r)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        for steps in self.steps:
            blocks = fed.descend(blocks, batch, frozen, steps=steps, step_size=0.1)
        return fed.average_groups(fed.average(blocks, batch, weights="at_work"), round=r)


@dataclass(frozen=True)
class Piecemeal(HSGD):
    """Averages the clients between its steps, and takes all silos at once or one after the other."""

    at_once: bool = True

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.select(self.fraction, round=r)
        embeddings = fed.embed(blocks, batch)
        for silo in (0, 1):
            to = None if self.at_once else silo
            frozen = fed.share(embeddings, batch, to=to)
            blocks = fed.descend(blocks, batch, frozen, steps=1, step_size=0.1, only=to)
            blocks = fed.average(blocks, batch, weights="at_work")
            if to == 0:
                embeddings = fed.embed(blocks, batch, only=0, known=embeddings)
        return fed.average_groups(blocks, round=r)


@pytest.mark.parametrize("kind", ["mlp", "convolution"])
@pytest.mark.parametrize("at_once", [True, False])
def test_averages_in_between(kind: str, at_once: bool) -> None:
    one, algorithm = task(kind, "head"), Piecemeal(1, 1, 0.1, 0.4, at_once)
    together, apart = (run(DATA, one, algorithm, together=which) for which in (True, False))
    torch.testing.assert_close(torch.cat(together.weights), torch.cat(apart.weights), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["mlp", "convolution"])
@pytest.mark.parametrize("steps", [(3,), (1, 1), (2, 1)])
def test_more_than_the_one_step(kind: str, steps: tuple[int, ...]) -> None:
    one, algorithm = task(kind, "head"), Hasty(1, 1, 0.1, 0.4, steps)
    together, apart = (run(DATA, one, algorithm, together=which) for which in (True, False))
    torch.testing.assert_close(torch.cat(together.weights), torch.cat(apart.weights), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["mlp", "convolution"])
def test_groups_that_are_not_averaged_keep_their_own(kind: str, passes: list[int]) -> None:
    one = task(kind, "head")
    together, apart = (run(DATA, one, Forgetful(1, 1, 0.1, 0.4), together=which, rounds=3) for which in (True, False))
    assert passes == [3, 3]  # at the start and after the average
    torch.testing.assert_close(torch.cat(together.weights), torch.cat(apart.weights), rtol=0, atol=1e-13)


def test_a_checkpoint_holds_equal_blocks_once() -> None:
    algorithm = HSGD(1, 1, 0.1, 0.4)
    straight = run(DATA, model(), algorithm, together=True, rounds=5)
    first = run(DATA, model(), algorithm, together=True, rounds=2)
    tensors, plain = first.snapshot()
    assert sorted(name for name in tensors if name.startswith("block")) == ["block.0.0", "block.0.1"]
    second = run(DATA, model(), algorithm, together=True, rounds=0)
    second.restore(tensors, plain)
    for _ in range(3):
        second.run_round()
    assert all(map(torch.equal, straight.weights, second.weights))


def test_threads_share_a_joint_pass(passes: list[int]) -> None:
    one = task("convolution", "head")
    single, double = (run(DATA, one, HSGD(1, 1, 0.1, 0.4), together=True, threads=threads) for threads in (1, 2))
    assert passes == [3] * 8
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
