"""How fast visits are, and how much memory many agents take."""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import truediv
from statistics import median

import numpy as np
import torch

from benchmarks.race import take_turns
from benchmarks.scale import peak_megabytes
from benchmarks.token_problem import Problem
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.graphs import Graph
from crosshatch.task.losses import Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.theory.optimum import Optimum

_TURNS = 11


def run_speed() -> None:
    """Visits of a simulation against loops of nothing but products.

    Two yardsticks, both for one visit of Q steps; ratios are taken turn by turn, and the median counts:

    plain   the 2Q products with the features, as PyTorch does them on features stored row by row: what a visit is
            in the paper, and what one would write
    inner   the products the visit really does, in the layout and into the memory it does them: with the squared loss
            two with the features and two with the eigenvectors of X'X
    """
    random = np.random.default_rng(0)
    cases: tuple[tuple[str, Loss, Regulariser, int, int, int], ...] = (
        ("ridge", Squared(), Regulariser(l2=1.0), 1000, 100, 20),
        ("logistic", Logistic(), Regulariser(l2=1.0), 1000, 100, 20),
        ("logistic, l1", Logistic(), Regulariser(l1=1.0), 1000, 100, 20),
        ("logistic", Logistic(), Regulariser(l2=1.0), 2000, 25, 30),
        ("logistic, l1", Logistic(), Regulariser(l1=1.0), 2000, 25, 30),
        ("logistic, l1", Logistic(), Regulariser(l1=1.0), 6000, 250, 30),
    )
    for title, loss, penalty, samples, columns, steps in cases:
        agents = 8
        x = random.standard_normal((samples, agents * columns)) / columns**0.5
        y = (random.random(samples) < 0.5).astype(np.float64)
        problem = Problem(x, y, loss, penalty, Optimum(np.zeros(0), 0.0, 1.0, 0.0))
        for precision in (torch.float64, torch.float32):
            simulator = problem.simulate(STCD(steps, "auto", Graph("complete")), agents, precision=precision)
            features = [silo.train.contiguous() for silo in simulator.data.silos]
            runners: dict[str, Callable[[], None]] = {
                "visit": simulator.run_round,
                "plain": _Plain(features, steps),
                "inner": _Inner(features, steps, loss),
            }
            # One thread never waits, so its processor time is its time, and neighbours do not count.
            times = take_turns(runners, _TURNS, time.process_time)
            plain, inner = (median(map(truediv, times[name], times["visit"])) for name in ("plain", "inner"))
            print(
                f"{title:<13} N {samples:4} d_k {columns:3} Q {steps} {str(precision)[6:]} "
                f"{1 / median(times['visit']):6.0f} visits/s; plain {1 / median(times['plain']):6.0f}: {plain:5.2f}; "
                f"inner {1 / median(times['inner']):6.0f}: {inner:.2f}",
                flush=True,
            )


class _Plain:
    """Two products per step, block after block."""

    def __init__(self, features: list[torch.Tensor], steps: int) -> None:
        self.features, self.steps, self.calls = features, steps, 0
        self.z, self.theta = features[0].new_ones(len(features[0])), features[0].new_ones(features[0].shape[1])

    def __call__(self) -> None:
        """The products of one visit."""
        part = self.features[self.calls % len(self.features)]
        self.calls += 1
        for _ in range(self.steps):
            torch.mv(part.T, self.z)
            torch.mv(part, self.theta)


class _Inner:
    """The same on features stored column by column, without new memory; few where the squared loss allows it."""

    def __init__(self, features: list[torch.Tensor], steps: int, loss: Loss) -> None:
        self.turned = [part.T.contiguous() for part in features]
        self.steps, self.calls, self.squared = steps, 0, isinstance(loss, Squared)
        self.z, self.theta = features[0].new_ones(len(features[0])), features[0].new_ones(features[0].shape[1])
        self.scores, self.slope = self.z.clone(), self.theta.clone()
        self.vectors = [torch.stack([torch.diag(self.theta)] * 2) for _ in features]

    def __call__(self) -> None:
        """The products of one visit."""
        agent = self.calls % len(self.turned)
        turned = self.turned[agent]
        self.calls += 1
        for _ in range(1 if self.squared else self.steps):
            torch.mv(turned, self.z, out=self.slope)
            torch.mv(turned.T, self.theta, out=self.scores)
        for vectors in self.vectors[agent] if self.squared else ():
            torch.mv(vectors, self.theta, out=self.slope)


def run_scale() -> None:
    """1,000 agents and 100 tokens."""
    random = np.random.default_rng(0)
    x = random.standard_normal((1000, 10_000)).astype(np.float32)
    y = random.standard_normal(1000)
    problem = Problem(x, y, Squared(), Regulariser(l2=1.0), Optimum(np.zeros(0), 0.0, 1.0, 0.0))  # type: ignore[arg-type]
    algorithm = MTCD(100, 20, "auto", 10, Graph("connectivity", ratio=0.01, seed=1))
    simulator = problem.simulate(algorithm, 1000, precision=torch.float32)
    start, before = time.perf_counter(), simulator.objective()
    for _ in range(100):
        simulator.run_round()
    seconds = time.perf_counter() - start
    peak = peak_megabytes()
    print(
        f"1000 agents, 100 tokens, 100 hops: {100 * 100 / seconds:.0f} visits/s, objective {before:.2f} to "
        f"{simulator.objective():.2f}, {simulator.meter.bytes / 1e6:.0f} MB sent, peak memory {peak:.0f} MB"
    )
