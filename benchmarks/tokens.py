"""Tokens on a graph: the experiments behind docs/results_tokens.md. `python -m benchmarks.tokens speed`, and so on.

readings under which reading of DCPA the paper's step sizes work
sparse   sparse logistic regression on Madelon and Arcene, against two solvers
speed    visits a second against the bare matrix products they contain
scale    memory of 1,000 agents with 100 tokens

The paper's Figures 2 and 3 are recipes: `crosshatch reproduce run mtcd`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.token_problem import RANDOM, Array, Problem, first_below, ridge_problem
from benchmarks.token_readings import run_readings
from benchmarks.token_speed import run_scale, run_speed
from crosshatch.algorithms.mtcd import STCD
from crosshatch.simulator.graph.simulated_tokens import SimulatedTokens
from crosshatch.task.losses import Logistic
from crosshatch.task.regulariser import Regulariser
from crosshatch.theory.optimum import find_optimum


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
        if name == "arcene":  # many correlated columns: more and longer steps a visit, below the 2 / L allowed
            assert isinstance(simulator.federation, SimulatedTokens)
            longest = 1.9 * min(agent.largest_step for agent in simulator.federation.agents)
            simulator = problem.simulate(STCD(300, longest, RANDOM), 20)
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


def main(arguments: list[str] | None = None) -> None:
    """Run one experiment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("experiment", choices=["readings", "sparse", "speed", "scale"])
    parser.add_argument("--rounds", type=int, default=5000, help="of 'readings', at most")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CROSSHATCH_DATA", "../shared/data")))
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    runs: dict[str, Callable[[], None]] = {
        "readings": lambda: run_readings(ridge_problem(), given.rounds),
        "sparse": lambda: run_sparse(given.data),
        "speed": run_speed,
        "scale": run_scale,
    }
    runs[given.experiment]()


if __name__ == "__main__":
    main()
