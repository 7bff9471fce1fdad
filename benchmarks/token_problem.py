"""What the experiments with tokens share: problems with their best value, and when a run reached which level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.graphs import Graph
from crosshatch.simulator.graph.graph_state import GraphState
from crosshatch.simulator.graph.simulated_tokens import Tokens
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.theory.optimum import Optimum, find_optimum

Array = npt.NDArray[np.float64]
RANDOM = Graph("connectivity", ratio=0.4, seed=1)


@dataclass(frozen=True)
class Problem:
    """Features (n, d), labels, loss and penalty, and the best value."""

    x: Array
    y: Array
    loss: Loss
    regulariser: Regulariser
    best: Optimum

    def simulate(
        self, algorithm: STCD | MTCD | DCPA, agents: int, *, seed: int = 0, precision: torch.dtype = torch.float64
    ) -> Simulator:
        """The columns in equal consecutive blocks, one per agent."""
        none = np.zeros(len(self.y), dtype=np.int64)
        silos = []
        for k, columns in enumerate(np.array_split(np.arange(self.x.shape[1]), agents)):
            part = torch.as_tensor(self.x[:, columns]).contiguous()
            silos.append(SiloData(f"agent{k}", part, part[:2], (), none, 1))
        y = torch.as_tensor(self.y)
        data = FederatedData(tuple(silos), y, y[:2], self.loss.target, 2)  # type: ignore[arg-type]
        blocks = tuple(nn.Linear(silo.train.shape[1], 1, bias=False) for silo in silos)
        task = Task(blocks, Sum(), self.loss, self.regulariser, tuple(silo.name for silo in silos))
        return Simulator(data, task, algorithm, seed=seed, threads=1, precision=precision)

    def suboptimality(self, simulator: Simulator) -> float:
        """From the tokens' own scores, which is faster than computing them anew."""
        course = simulator.state
        assert isinstance(course, GraphState)
        if isinstance(course.values, Tokens):
            z, theta = course.values.scores.mean(0), course.values.models.mean(0)
            losses = self.loss.value(z, simulator.data.y_train)
            return self.best.suboptimality(float(losses.sum() + self.regulariser.penalty(theta)))
        return self.best.suboptimality(simulator.objective())


def ridge_problem() -> Problem:
    """N = 1000, d = 2000, features uniform in {0, 1}, normal labels, alpha = 10."""
    random = np.random.default_rng(0)
    x = random.integers(0, 2, (1000, 2000)).astype(np.float64)
    y = random.standard_normal(1000)
    return Problem(x, y, Squared(), Regulariser(l2=10.0), find_optimum(x, y, Squared(), Regulariser(l2=10.0)))


def course(
    problem: Problem, simulator: Simulator, *, every: int, rounds: int, until: float
) -> Iterator[tuple[int, int, float]]:
    """Round, communications and suboptimality, every so many rounds until it is small enough."""
    while simulator.round < rounds:
        for _ in range(every):
            simulator.run_round()
        now = problem.suboptimality(simulator)
        communications = simulator.communications
        assert communications is not None
        yield simulator.round, communications, now
        if now <= until:
            return


def first_below(
    problem: Problem, simulator: Simulator, levels: Sequence[float], *, every: int, rounds: int
) -> dict[float, tuple[int, int] | None]:
    """Round and communications at which each level (falling) was first seen to be reached."""
    reached: dict[float, tuple[int, int] | None] = dict.fromkeys(levels)
    last = 1.0
    for r, sent, now in course(problem, simulator, every=every, rounds=rounds, until=min(levels)):
        last = now
        for level in levels:
            if reached[level] is None and now <= level:
                reached[level] = (r, sent)
    print(
        f"    {simulator.round} rounds, {simulator.communications} communications, suboptimality {last:.2e}", flush=True
    )
    return reached
