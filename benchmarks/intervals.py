"""HSGD's strategies for P, Q and the step size: bytes to a target on PhysioNet 2012, and what they choose.

    python -m benchmarks.intervals --data DIR [--pairs 1:1,2:2,4:2] [--seeds 3] [--quick] [--out FILE]
    python -m benchmarks.intervals --data DIR --losses       # training loss over P, Q and step size
    python -m benchmarks.intervals --data DIR --measured 1   # what "measure" finds at step size 1

Ten groups as in `benchmarks.tiers`. Every P:Q has its own step size of one grid, by the validation rows' rounds to the
target. `--constants` prints the estimated F0, rho and delta^2 and the Q* that each reading of strategy 2 gives.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from benchmarks.reach import Chosen, Course, Search, choose, publish, spread, train
from benchmarks.settings import data_folder
from benchmarks.tiers import CONTESTANTS, PHYSIONET, held_rows, network
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.data.federated import FederatedData
from crosshatch.errors import TrainingError
from crosshatch.runs.choosing import measure
from crosshatch.runs.choosing.trials import put_aside, trial_rounds
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task
from crosshatch.theory.constants import Constants
from crosshatch.theory.estimate import Sampling, estimate
from crosshatch.theory.strategies import best_interval

TARGET = 0.80
ROUNDS = 40
STEPS = 2000
TARGETS = (0.75, 0.78, TARGET)
LOSS_PAIRS = ((1, 1), (2, 2), (5, 5), (10, 10), (4, 1), (16, 1))
LOSS_SIZES = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
PAIRS = ((1, 1), (2, 2), (5, 5), (10, 10), (20, 20), (50, 50), (4, 2), (8, 2), (16, 2))


def grid(q: int) -> tuple[float, ...]:
    """Powers of two, four of them around what a trial with seed 0 found: losers cost time."""
    highest = {1: 4.0, 2: 4.0, 5: 2.0, 10: 1.0, 20: 1.0}.get(q, 0.5)
    return tuple(highest / 2**i for i in range(4))


def compete(
    p: int, q: int, folder: Path | None, seeds: int, rounds: int, step_sizes: tuple[float, ...] | None = None
) -> Chosen:
    """Step size by validation rows, a run for each seed. Between averages the groups' mean is evaluated."""
    search = Search("auc", TARGETS, len(TARGETS) - 1, min(rounds, max(6, STEPS // q)), smooth=3)

    def run(step_size: float, seed: int, limit: int) -> Course:
        held = held_rows(PHYSIONET, folder, False, seed)
        algorithm = HSGD(p, q, step_size, PHYSIONET.fraction)
        return train(_simulate(held.data, seed, algorithm), held, search, limit=limit)

    return choose(f"P {p} Q {q}", run, step_sizes or grid(q), search, seeds=seeds)


def measured(step_size: float, folder: Path | None, seeds: int, rounds: int) -> Iterator[str]:
    """What `local_steps = "measure"` finds with each seed, and where that leads."""
    search = Search("auc", TARGETS, len(TARGETS) - 1, rounds, smooth=3)
    for seed in range(seeds):
        held = held_rows(PHYSIONET, folder, False, seed)
        tried = partial(_simulate, put_aside(held.data, seed=seed, key="local_steps"), seed)
        trials = measure.StepSearch(HSGD(1, 1, step_size, PHYSIONET.fraction), tried, trial_rounds(rounds))
        q = trials.lasting(trials.best_interval(measure.Candidate(local_steps=measure.MIDDLE)), rounds).local_steps
        assert q is not None
        course = train(
            _simulate(held.data, seed, HSGD(q, q, step_size, PHYSIONET.fraction)), held, search, limit=rounds
        )
        found = [
            f"{course.test[t].round} ({course.test[t].bytes / 1e6:.3g} MB)" if t in course.test else "-"
            for t in TARGETS
        ]
        yield f"| {step_size:g} | {seed} | {q} | " + " | ".join(found) + " |"


def _simulate(data: FederatedData, seed: int, algorithm: AnyAlgorithm) -> Simulator:
    task = build_task(data, PHYSIONET.model, seed=seed)
    lines = network(PHYSIONET, CONTESTANTS[0], len(data.y_train))
    return Simulator(data, task, algorithm, seed=seed, network=lines, threads=1)


def losses(folder: Path | None, seeds: int) -> Iterator[str]:
    """Training loss for P, Q and a step size: the median of rounds 9 to 16 on 2,048 samples, mean of seeds."""
    yield "| P | Q | " + " | ".join(f"{size:g}" for size in LOSS_SIZES) + " |"
    yield "|---" * (2 + len(LOSS_SIZES)) + "|"
    for p, q in LOSS_PAIRS:
        cells = [_loss(p, q, size, folder, seeds) for size in LOSS_SIZES]
        yield f"| {p} | {q} | " + " | ".join(f"{cell:.4f}" if cell < 10 else "diverges" for cell in cells) + " |"


def _loss(p: int, q: int, step_size: float, folder: Path | None, seeds: int) -> float:
    found = []
    for seed in range(seeds):
        data = held_rows(PHYSIONET, folder, False, seed).data
        simulator = _simulate(data, seed, HSGD(p, q, step_size, PHYSIONET.fraction))
        seen = []
        try:
            for _ in range(16):
                simulator.run_round()
                seen.append(simulator.objective(2048))
        except TrainingError:
            return math.inf
        found.append(statistics.median(seen[8:]))
    return statistics.fmean(found)


def row(p: int, q: int, found: Chosen) -> str:
    """One line of the table."""
    cells: list[object] = [p, q, f"{found.step_size:g}"]
    for target in TARGETS:
        spent = found.spent(target)
        if spent is None:
            cells += [f"not reached; best {', '.join(f'{course.best:.3f}' for course in found.courses)}", "-", "-"]
            continue
        rounds = "/".join(str(one.round) for one in spent)
        cells += [rounds, spread([one.bytes / 1e6 for one in spent]), spread([one.seconds for one in spent])]
    return "| " + " | ".join(map(str, cells)) + " |"


def describe(constants: Constants, rounds: int) -> list[str]:
    """Q* for some step sizes: as printed and as its own derivative gives it, and with the noise of the average."""
    averaged = statistics.fmean(constants.batch_noise) / 10  # of ten groups' mean, were they alike
    lines = [
        f"F0 {constants.gap:.3g}, rho {constants.rho:.3g} (Hessian {constants.lipschitz:.3g}), "
        f"delta^2 {constants.delta_squared:.3g}, of the average about {averaged:.2g}; T = {rounds}",
        "| step size | largest P the theorem allows | Q*, eta^2 | Q*, eta^3 | Q*, eta^3, noise of the average |",
        "|---|---|---|---|---|",
    ]
    for step_size in (1.0, 0.3, 0.1, 0.03, 0.01, 0.0025):
        interval = partial(best_interval, gap=constants.gap, rho=constants.rho, step_size=step_size, iterations=rounds)
        printed = interval(delta_squared=constants.delta_squared)
        derived = interval(delta_squared=constants.delta_squared, rule="derived")
        calm = interval(delta_squared=averaged, rule="derived")
        lines.append(f"| {step_size:g} | {1 / (8 * step_size * constants.rho):.2g} | {printed} | {derived} | {calm} |")
    return lines


def constants_of(folder: Path | None, seed: int) -> Constants:
    """What `crosshatch plan` would estimate."""
    data = held_rows(PHYSIONET, folder, False, seed).data
    return estimate(
        data, build_task(data, PHYSIONET.model, seed=seed), Sampling(fraction=PHYSIONET.fraction), seed=seed
    )


def main() -> int:
    """Run the chosen pairs and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", help="P:Q, like 1:1,4:2")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--step-sizes", help="another grid, like 1,0.3")
    parser.add_argument("--constants", action="store_true", help="only the estimates and what follows from them")
    parser.add_argument("--measured", type=float, help='what "measure" finds at this step size, and nothing else')
    parser.add_argument("--losses", action="store_true", help="only the training loss over P, Q and step size")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    parser.add_argument("--data", type=Path, help="data folder (default: CROSSHATCH_DATA)")
    parser.add_argument("--out", type=Path, help="add the table to this file too")
    given = parser.parse_args()
    torch.set_num_threads(1)
    return publish(table(given), given.out)


def table(given: argparse.Namespace) -> Iterator[str]:
    """The lines, pair by pair, or those about the constants."""
    folder = data_folder(given.data)
    if given.constants:
        for seed in range(given.seeds):
            yield from describe(constants_of(folder, seed), 200)
        return
    if given.measured:
        yield "| step size | seed | Q | " + " | ".join(f"rounds to {target:g}" for target in TARGETS) + " |"
        yield "|---" * (3 + len(TARGETS)) + "|"
        yield from measured(given.measured, folder, given.seeds, given.rounds)
        return
    if given.losses:
        yield from losses(folder, given.seeds)
        return
    pairs: tuple[tuple[int, int], ...] = PAIRS
    if given.pairs:
        pairs = tuple((int(p), int(q)) for p, q in (pair.split(":") for pair in given.pairs.split(",")))
    step_sizes = tuple(float(size) for size in given.step_sizes.split(",")) if given.step_sizes else None
    head = "rounds (seeds) | MB | simulated s"
    yield "| P | Q | step size | " + " | ".join(f"to {target:g}: {head}" for target in TARGETS) + " |"
    yield "|---" * (3 + 3 * len(TARGETS)) + "|"
    seeds, rounds = (1, 6) if given.quick else (given.seeds, given.rounds)
    for p, q in pairs:
        yield row(p, q, compete(p, q, folder, seeds, rounds, step_sizes))


if __name__ == "__main__":
    sys.exit(main())
