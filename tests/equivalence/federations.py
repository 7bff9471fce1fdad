"""Random small federations in float64, and how to run them.

Hypothesis draws the structure (silos, clients, blocks, loss, fusion, sizes) and a seed for the numbers, so that a
failing example shrinks to a small federation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import strategies as st
from torch import Tensor

from crosshatch.data.dataset import Target
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.batches import GivenBatches
from crosshatch.schedules import Constant, Halving, InverseSqrt, Schedule
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from tests.equivalence.modules import make_block, make_head

Ids = npt.NDArray[np.int64]
ROUNDS = 3
EXACT = 1e-10
CLASSES = 3
KINDS = ("linear", "mlp", "convolution", "gated")
LOSSES: tuple[Loss, ...] = (Squared(), Logistic(), CrossEntropy())


@dataclass(frozen=True)
class Case:
    """A federation, a task and what an algorithm needs: Q, step size, batches."""

    data: FederatedData
    task: Task
    steps: int
    step_size: Schedule
    batches: Ids  # (rounds, steps, size): the ids of each local step, a journal round uses the first set only
    batch_size: int | None  # None: all samples, `batches` are then not asked
    strategy: str

    @property
    def settings(self) -> dict[str, Any]:
        """The settings every algorithm with local steps takes."""
        return {"local_steps": self.steps, "step_size": self.step_size, "batch_size": self.batch_size}

    def ids(self, round: int, step: int) -> Ids:
        """The samples of a local step where every step has its own."""
        if self.batch_size is None:
            return np.arange(len(self.data.y_train))
        drawn: Ids = self.batches[round, step]
        return drawn

    def simulate(self, algorithm: Algorithm, *, rounds: int = ROUNDS, **options: Any) -> Simulator:
        """Run some rounds."""
        simulator = self.prepare(algorithm, **options)
        for _ in range(rounds):
            simulator.run_round()
        return simulator

    def prepare(self, algorithm: Algorithm, **options: Any) -> Simulator:
        """A simulator with this case's batches."""
        given = {
            "precision": torch.float64,
            "threads": 1,
            "strategy": self.strategy,
            "batches": GivenBatches(self.batches),
            **options,
        }
        return Simulator(self.data, self.task, algorithm, **given)

    def with_labels(self, silo: str | None) -> Case:
        """The same with the labels shared (None) or held by one silo."""
        return replace(self, data=replace(self.data, label_silo=silo))

    def with_task(self, **changes: Any) -> Case:
        """The same with another part of the task."""
        return replace(self, task=replace(self.task, **changes))

    @property
    def label_holder(self) -> str:
        """The silo that may hold the labels: the head's holder where there is one, else the last."""
        holder = self.task.fusion.holder if isinstance(self.task.fusion, Head) else -1
        return self.data.silos[holder].name


@st.composite
def cases(
    draw: st.DrawFn,
    *,
    silos: tuple[int, int] = (1, 4),
    clients: tuple[int, int] = (1, 5),
    steps: tuple[int, int] = (1, 4),
    heads: bool = True,
    kinds: Sequence[str] = KINDS,
    l1: bool = False,
    equal_shares: bool = False,
) -> Case:
    """Random federations; `equal_shares`: every client has as many samples of a batch as any other of its silo."""
    seed = draw(st.integers(0, 2**20))
    count = draw(st.integers(*silos))
    loss = draw(st.sampled_from(LOSSES))
    head = heads and draw(st.booleans())
    members = [draw(st.integers(*clients)) for _ in range(count)]
    samples = 12 if equal_shares else draw(st.integers(4, 20))
    if equal_shares:
        members = [draw(st.sampled_from([m for m in (1, 2, 3, 4) if m <= clients[1]])) for _ in members]
    local_steps = draw(st.integers(*steps))
    size = None if equal_shares else draw(st.none() | st.integers(1, samples))
    rng = np.random.default_rng(seed)
    columns = [draw(st.integers(2, 4)) for _ in range(count)]
    data = make_data(rng, columns, members, samples, loss, equal_shares=equal_shares)
    l2 = draw(st.sampled_from((0.0, 0.1)))
    penalise_bias = draw(st.booleans())
    regulariser = Regulariser(l2, draw(st.sampled_from((0.02, 0.1))) if l1 else 0.0, penalise_bias)
    block_kinds = [draw(st.sampled_from(kinds)) for _ in range(count)]
    holder = draw(st.integers(0, count - 1)) if head else None
    task = make_task(seed, block_kinds, columns, loss, holder, regulariser)
    schedules: tuple[Schedule, ...] = (Constant(0.1), InverseSqrt(0.15), Halving(0.1, 1))
    schedule = draw(st.sampled_from(schedules))
    drawn = [[rng.permutation(samples)[:size] for _ in range(local_steps)] for _ in range(ROUNDS)]
    strategy = draw(st.sampled_from(("auto", "loop")))
    return Case(data, task, local_steps, schedule, np.asarray(drawn), size, strategy)


def make_data(
    rng: np.random.Generator,
    columns: Sequence[int],
    members: Sequence[int],
    samples: int,
    loss: Loss,
    *,
    equal_shares: bool = False,
) -> FederatedData:
    """Standard normal features; ragged owners (a client may hold nothing), drawn anew for every silo."""
    silos = []
    for j, (width, clients) in enumerate(zip(columns, members, strict=True)):
        x = torch.as_tensor(rng.normal(size=(samples, width)))
        if equal_shares:
            owners = rng.permutation(np.arange(samples) % clients)
        else:
            owners = rng.choice(clients, size=samples, p=rng.dirichlet(np.ones(clients)))
        names = tuple(f"x{c}" for c in range(width))
        silos.append(SiloData(f"silo{j}", x, x[:3], names, owners.astype(np.int64), clients))
    target: Target = "regression"
    classes = 1
    y = torch.as_tensor(rng.normal(size=samples))
    if isinstance(loss, Logistic):
        target, classes, y = "binary", 2, torch.as_tensor(rng.integers(0, 2, samples), dtype=torch.float64)
    elif isinstance(loss, CrossEntropy):
        target, classes, y = "multiclass", CLASSES, torch.as_tensor(rng.integers(0, CLASSES, samples))
    return FederatedData(tuple(silos), y, y[:3], target, classes)


def make_task(
    seed: int,
    kinds: Sequence[str],
    columns: Sequence[int],
    loss: Loss,
    holder: int | None,
    regulariser: Regulariser,
) -> Task:
    """Blocks of the given kinds, under a head held by silo `holder` (None: a sum)."""
    scores = CLASSES if isinstance(loss, CrossEntropy) else 1
    widths = [scores if holder is None else 1 + j % 3 for j in range(len(kinds))]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        blocks = [make_block(k, c, w).double() for k, c, w in zip(kinds, columns, widths, strict=True)]
        fusion: Fusion = Sum()
        if holder is not None:
            fusion = Head(make_head("mlp" if seed % 2 else "linear", sum(widths), scores).double(), holder)
    return Task(tuple(blocks), fusion, loss, regulariser, tuple(f"silo{j}" for j in range(len(kinds))))


def assert_same(found: Sequence[Tensor], wanted: Sequence[Tensor], tolerance: float = EXACT) -> None:
    """Weights of every silo agree, relative to their size where that is above 1; tolerance 0: bit for bit."""
    assert len(found) == len(wanted)
    for j, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        assert ours.shape == theirs.shape
        scale = max(1.0, float(theirs.detach().abs().max()))
        off = float((ours - theirs).detach().abs().max()) / scale
        assert off <= tolerance, f"silo {j} is off by {off:.3g}"
