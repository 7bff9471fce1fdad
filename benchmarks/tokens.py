"""Tokens on a graph: the experiments behind docs/results_tokens.md. `python -m benchmarks.tokens ridge`, and so on.

ridge    STCD against DCPA on the random graph and the chain (the paper's Figure 2, top row)
search   working step sizes of DCPA on the random graph
chains   MTCD against STCD on chains of 20, 40 and 80 agents, five seeds (the paper's Figure 3)
sparse   sparse logistic regression on Madelon and Arcene, against two solvers
speed    visits a second against the bare matrix products they contain
scale    memory of 1,000 agents with 100 tokens
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.graphs import Graph
from crosshatch.simulator.graph_course import DualCourse, TokenCourse
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.theory.optimum import Optimum, find_optimum

Array = npt.NDArray[np.float64]
RANDOM = Graph("connectivity", ratio=0.4, seed=1)
CHAIN = Graph("path")
PAPER = DCPA(step_size=0.01, dual_step=0.0003, consensus_step=0.03)


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
        """The columns in equal consecutive blocks, one an agent."""
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
        course = simulator.course
        if isinstance(course, TokenCourse):
            z, theta = course.tokens.scores.mean(0), course.tokens.models.mean(0)
            losses = self.loss.value(z, simulator.data.y_train)
            return self.best.suboptimality(float(losses.sum() + self.regulariser.penalty(theta)))
        assert isinstance(course, DualCourse)
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


def show(title: str, reached: dict[float, tuple[int, int] | None]) -> None:
    """One line a level."""
    for level, at in reached.items():
        text = "not reached" if at is None else f"round {at[0]}, {at[1]} communications"
        print(f"{title:<40} {level:.0e}: {text}", flush=True)


def edges(graph: Graph) -> int:
    """Between 20 agents."""
    return int(graph.build([str(k) for k in range(20)]).number_of_edges())


def run_ridge(rounds: int) -> None:
    """Figure 2, top row."""
    problem = ridge_problem()
    print("communications of DCPA an iteration: random", 2 * edges(RANDOM), "chain", 2 * edges(CHAIN))
    print(f"f* = {problem.best.value:.6f}, f(0) = {problem.best.zero:.6f}, gap {problem.best.gap:.1e}")
    levels = (1e-2, 1e-3, 1e-5)
    for name, graph in (("random p = 0.4", RANDOM), ("chain", CHAIN)):
        for label, step in (("mu = 1e-5", 1e-5), ("mu = 1/L", "auto")):
            stcd = problem.simulate(STCD(20, step, graph), 20)  # type: ignore[arg-type]
            show(f"STCD, {name}, {label}", first_below(problem, stcd, levels, every=50, rounds=20 * rounds))
        tuned = problem.simulate(DCPA(step_size=0.001, graph=graph), 20)
        show(f"DCPA, {name}, mu_w = 0.001", first_below(problem, tuned, (*levels, 1e-8), every=20, rounds=rounds))
    paper = problem.simulate(replace(PAPER, graph=RANDOM), 20)
    show("DCPA, random, the paper's steps", first_below(problem, paper, (0.1, *levels, 1e-8), every=50, rounds=rounds))


def run_search(rounds: int) -> None:
    """mu_w over a grid; mu_y and mu_x share what the limit leaves."""
    problem = ridge_problem()
    for step in (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001):
        simulator = problem.simulate(DCPA(step_size=step, graph=RANDOM), 20)
        print(f"mu_w = {step:g}")
        first_below(problem, simulator, (1e-12,), every=rounds, rounds=rounds)


def run_chains(rounds: int) -> None:
    """Figure 3: hops to a suboptimality, five seeds."""
    problem = ridge_problem()
    levels = (1e-1, 1e-2)
    for agents in (20, 40, 80):
        hops: dict[str, list[dict[float, tuple[int, int] | None]]] = {"STCD": [], "MTCD": []}
        for seed in range(5):
            for name, algorithm in (("STCD", STCD(20, 1e-5, CHAIN)), ("MTCD", MTCD(10, 20, 1e-5, 10, CHAIN))):
                simulator = problem.simulate(algorithm, agents, seed=seed)
                hops[name].append(first_below(problem, simulator, levels, every=10, rounds=10 * rounds))
        for level in levels:
            found = {name: [run[level][0] if run[level] else None for run in runs] for name, runs in hops.items()}  # type: ignore[index]
            print(f"chain of {agents}, {level:g}: STCD {found['STCD']}, MTCD {found['MTCD']}", flush=True)


def run_sparse(folder: Path) -> None:
    """STCD's objective and support against two solvers."""
    for name, rows in (("madelon", 2000), ("arcene", 200)):
        with np.load(folder / f"{name}.npz", allow_pickle=False) as archive:
            whole, labels = archive["x"].astype(np.float64)[:rows], archive["y"].astype(np.float64)[:rows]
        varied = whole[:, whole.std(0) > 0]
        x = (varied - varied.mean(0)) / varied.std(0)
        penalty = Regulariser(l1=1.0 if name == "arcene" else 20.0)
        best = find_optimum(x, labels, Logistic(), penalty)
        second = by_cvxpy(x, labels, penalty.l1)
        print(f"{name} {x.shape}: f* {best.value:.8f} (gap {best.gap:.1e}), cvxpy {second:.8f}", flush=True)
        problem = Problem(x, labels, Logistic(), penalty, best)
        simulator = problem.simulate(STCD(30, "auto", RANDOM), 20)
        first_below(problem, simulator, (1e-8,), every=500, rounds=20_000)
        found = np.concatenate([weights.numpy() for weights in simulator.weights])
        ours, theirs = np.abs(found) > 1e-4, np.abs(best.weights) > 1e-4
        print(
            f"    objective off by {simulator.objective() / best.value - 1:.1e}, weights by "
            f"{np.abs(found - best.weights).max():.1e}; support {ours.sum()} and {theirs.sum()}, "
            f"{(ours != theirs).sum()} differ",
            flush=True,
        )


def by_cvxpy(x: Array, y: Array, l1: float) -> float:
    """The second opinion on sparse logistic regression."""
    cp: Any = import_module("cvxpy")  # for development only
    theta = cp.Variable(x.shape[1])
    z = x @ theta
    best = cp.Problem(cp.Minimize(cp.sum(cp.logistic(z) - cp.multiply(y, z)) + l1 * cp.norm1(theta)))
    return float(best.solve(solver=cp.CLARABEL))


def run_speed() -> None:
    """Visits of a simulation against loops of nothing but the products."""
    random = np.random.default_rng(0)
    cases: tuple[tuple[str, Loss, int, int, int], ...] = (
        ("ridge, N 1000, d_k 100, Q 20", Squared(), 1000, 100, 20),
        ("logistic, N 1000, d_k 100, Q 20", Logistic(), 1000, 100, 20),
        ("logistic, N 6000, d_k 250, Q 30", Logistic(), 6000, 250, 30),
        ("logistic, N 2000, d_k 25, Q 30", Logistic(), 2000, 25, 30),
    )
    for title, loss, samples, columns, steps in cases:
        agents = 8
        x = random.standard_normal((samples, agents * columns)) / columns**0.5
        y = (random.random(samples) < 0.5).astype(np.float64)
        none = Optimum(np.zeros(0), 0.0, 1.0, 0.0)
        problem = Problem(x, y, loss, Regulariser(l2=1.0), none)
        for precision in (torch.float64, torch.float32):
            simulator = problem.simulate(STCD(steps, "auto", Graph("complete")), agents, precision=precision)
            features = [silo.train for silo in simulator.data.silos]
            visit, bare = race(simulator.run_round, _Products(features, steps))
            way = next(iter(simulator.strategies.values()))
            print(
                f"{title:<34} {str(precision)[6:]:<8} {way:<7} {1 / visit:8.0f} visits/s, products alone "
                f"{1 / bare:8.0f}: {bare / visit:.2f}",
                flush=True,
            )


class _Products:
    """The products of a visit and nothing else, block after block."""

    def __init__(self, features: list[torch.Tensor], steps: int) -> None:
        self.features, self.steps, self.calls = features, steps, 0
        self.z, self.theta = features[0].new_ones(len(features[0])), features[0].new_ones(features[0].shape[1])

    def __call__(self) -> None:
        """Two products a step."""
        part = self.features[self.calls % len(self.features)]
        self.calls += 1
        for _ in range(self.steps):
            torch.mv(part.T, self.z)
            torch.mv(part, self.theta)


def race(*runners: Callable[[], None]) -> list[float]:
    """Best processor seconds a call of each, measured in turns: other work on the machine hits all of them."""
    best = [float("inf")] * len(runners)
    for runner in runners:
        runner()
    for _ in range(15):
        for i, runner in enumerate(runners):
            samples = []
            for _ in range(10):
                start = time.process_time()
                runner()
                samples.append(time.process_time() - start)
            best[i] = min(best[i], median(samples))
    return best


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
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"1000 agents, 100 tokens, 100 hops: {100 * 100 / seconds:.0f} visits/s, objective {before:.2f} to "
        f"{simulator.objective():.2f}, {simulator.meter.bytes / 1e6:.0f} MB sent, peak memory {peak:.0f} MB"
    )


def main(arguments: list[str] | None = None) -> None:
    """Run one experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", choices=["ridge", "search", "chains", "sparse", "speed", "scale"])
    parser.add_argument("--rounds", type=int, default=5000, help="at most; tokens get 10 or 20 times as many hops")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CROSSHATCH_DATA", "../shared/data")))
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    runs: dict[str, Callable[[], None]] = {
        "ridge": lambda: run_ridge(given.rounds),
        "search": lambda: run_search(min(given.rounds, 1000)),
        "chains": lambda: run_chains(given.rounds),
        "sparse": lambda: run_sparse(given.data),
        "speed": run_speed,
        "scale": run_scale,
    }
    runs[given.experiment]()


if __name__ == "__main__":
    main()
