"""Tokens on a graph: the experiments behind docs/results_tokens.md. `python -m benchmarks.tokens ridge`, and so on.

ridge    STCD against DCPA on the random graph and the chain (the paper's Figure 2, top row)
search   working step sizes of DCPA on the random graph
readings under which reading of DCPA the paper's step sizes work
chains   MTCD against STCD on chains of 20, 40 and 80 agents, five seeds (the paper's Figure 3)
sparse   sparse logistic regression on Madelon and Arcene, against two solvers
speed    visits a second against the bare matrix products they contain
scale    memory of 1,000 agents with 100 tokens
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.token_problem import CHAIN, RANDOM, Array, Problem, first_below, ridge_problem, show
from benchmarks.token_readings import run_readings
from benchmarks.token_speed import run_scale, run_speed
from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.graphs import Graph
from crosshatch.simulator.graph.simulated_tokens import SimulatedTokens
from crosshatch.task.losses import Logistic
from crosshatch.task.regulariser import Regulariser
from crosshatch.theory.optimum import find_optimum

PAPER = DCPA(step_size=0.01, dual_step=0.0003, consensus_step=0.03)


def edges(graph: Graph) -> int:
    """Between 20 agents."""
    return int(graph.build([str(k) for k in range(20)]).number_of_edges())


def run_ridge(rounds: int) -> None:
    """Figure 2, top row; DCPA for at most `rounds` iterations, STCD for ten times as many hops."""
    problem = ridge_problem()
    print("communications of DCPA an iteration: random", 2 * edges(RANDOM), "chain", 2 * edges(CHAIN))
    print(f"f* = {problem.best.value:.6f}, f(0) = {problem.best.zero:.6f}, gap {problem.best.gap:.1e}")
    levels = (1e-2, 1e-3, 1e-5)
    for name, graph in (("random p = 0.4", RANDOM), ("chain", CHAIN)):
        for label, step in (("mu = 1e-5", 1e-5), ("mu = 1/L", "auto")):
            stcd = problem.simulate(STCD(20, step, graph), 20)  # type: ignore[arg-type]
            show(f"STCD, {name}, {label}", first_below(problem, stcd, levels, every=50, rounds=10 * rounds))
        tuned = problem.simulate(DCPA(step_size=0.001, graph=graph), 20)
        show(f"DCPA, {name}, mu_w = 0.001", first_below(problem, tuned, (*levels, 1e-8), every=20, rounds=rounds))
    paper = problem.simulate(replace(PAPER, graph=RANDOM), 20)
    show("DCPA, random, the paper's steps", first_below(problem, paper, (*levels, 1e-8), every=500, rounds=rounds))


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
                hops[name].append(first_below(problem, simulator, levels, every=10, rounds=rounds))
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
    parser.add_argument("experiment", choices=["ridge", "search", "readings", "chains", "sparse", "speed", "scale"])
    parser.add_argument(
        "--rounds", type=int, help="at most; of 'ridge' 100,000, 'chains' 50,000, 'readings' 5,000, 'search' 1,000"
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CROSSHATCH_DATA", "../shared/data")))
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    runs: dict[str, Callable[[], None]] = {
        "ridge": lambda: run_ridge(given.rounds or 100_000),
        "search": lambda: run_search(given.rounds or 1000),
        "readings": lambda: run_readings(ridge_problem(), given.rounds or 5000),
        "chains": lambda: run_chains(given.rounds or 50_000),
        "sparse": lambda: run_sparse(given.data),
        "speed": run_speed,
        "scale": run_scale,
    }
    runs[given.experiment]()


if __name__ == "__main__":
    main()
