"""ABCD where silos hold views of the same thing: which step sizes diverge, which arrive, and what "measure" finds.

    python -m benchmarks.abcd_views [--silos 6,12] [--seeds 3]

Every silo has `WIDTH` random linear maps of one latent vector of `LATENT` standard normal numbers, with noise of a
tenth of their deviation; the class is the largest of ten random linear maps of the latent vector. Blocks are networks
with 32 hidden units, their scores are added up, Q is 10. Central's step size is the one of `GRID` with which FedSGD is
best on the validation rows within `ROUNDS` rounds, and the target what it reaches on the test rows with it, each seed
with data of its own. "diverged" is by the rule that ends runs, with the round.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from benchmarks.settings import Held, measure
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import federate
from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Dataset, Samples
from crosshatch.errors import TrainingError
from crosshatch.exchanges import Algorithm
from crosshatch.runs.choosing.measure import FIRST, Candidate, StepSearch
from crosshatch.runs.choosing.trials import put_aside, trial_rounds
from crosshatch.simulator.divergence import Growth
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task
from crosshatch.theory.anticipation import Anticipation, block_curvature

LATENT, WIDTH, CLASSES = 20, 20, 10
TRAIN, VALIDATION, TEST = 3000, 1000, 1000
BATCH, ROUNDS, CLIENTS = 500, 60, 5
FACTORS = (3, 1, 0.3)  # of central's step size
GRID = (0.1, 0.3, 1.0, 3.0, 10.0)
LONGER = (1, 10, 30, 100, 300)
MLP, LINEAR = ModelSettings("mlp", hidden=(32,)), ModelSettings("linear")


def views(silos: int, clients: int, seed: int) -> Held:
    """The federation; of its test rows the first are for validation."""
    random = np.random.default_rng(seed)
    latent = random.standard_normal((TRAIN + VALIDATION + TEST, LATENT))
    y = (latent @ random.standard_normal((LATENT, CLASSES))).argmax(1)
    x = latent @ random.standard_normal((LATENT, silos * WIDTH))
    x += 0.1 * x.std(0) * random.standard_normal(x.shape)
    names = tuple(f"view{number // WIDTH}_{number % WIDTH}" for number in range(silos * WIDTH))
    table = pl.DataFrame(x, schema=names)
    train, test = (Samples(table[rows], y[rows]) for rows in (slice(TRAIN), slice(TRAIN, None)))
    dataset = Dataset("views", "table", train, test, "multiclass", CLASSES, names)
    return Held(federate(dataset, FederationSettings(silos=silos, clients=clients), seed=seed), VALIDATION)


@dataclass(frozen=True)
class Course:
    """Accuracies on validation and test rows and the training loss, round after round; where it diverged, if it did."""

    validation: list[float]
    test: list[float]
    losses: list[float]
    diverged: int | None

    def says(self, target: float) -> str:
        """The first round at the target, or what happened instead."""
        hit = next((r for r, value in enumerate(self.test, 1) if value >= target), None)
        if self.diverged is not None:
            return f"diverged at {self.diverged}" if hit is None else f"{hit}, diverged at {self.diverged}"
        return "never" if hit is None else str(hit)


@dataclass(frozen=True)
class Case:
    """Views of one seed at so many silos, with one party each or with clients."""

    silos: int
    clients: int
    seed: int

    @cached_property
    def held(self) -> Held:
        """The data."""
        return views(self.silos, self.clients, self.seed)

    def run(self, algorithm: Algorithm, model: ModelSettings = MLP) -> Course:
        """All rounds, or those before it diverged."""
        data = self.held.data
        simulator = Simulator(data, build_task(data, model, seed=self.seed), algorithm, seed=self.seed, threads=1)
        rule = Growth(simulator.objective(), simulator.zero_objective())
        course = Course([], [], [], None)
        for number in range(1, ROUNDS + 1):
            try:
                simulator.run_round()
                course.losses.append(simulator.objective())
            except TrainingError:
                return Course(course.validation, course.test, course.losses, number)
            if rule.notice(course.losses[-1], number, str):
                return Course(course.validation, course.test, course.losses, number)
            course.validation.append(measure(simulator, self.held, "accuracy", "validation"))
            course.test.append(measure(simulator, self.held, "accuracy", "test"))
        return course

    def measured(self) -> float:
        """What `step_size = "measure"` finds for ABCD."""
        aside = put_aside(self.held.data, seed=self.seed, key="step_size")
        task = build_task(aside, MLP, seed=self.seed)
        search = StepSearch(
            ABCD(10, 0.1, BATCH),
            lambda algorithm: Simulator(aside, task, algorithm, seed=self.seed, threads=1),
            trial_rounds(ROUNDS),
        )
        found = search.lasting(search.best_step(Candidate(None, FIRST)), ROUNDS).step_size
        assert found is not None
        return found


def lines(silos: int, seed: int) -> Iterator[str]:
    """What every contestant does with these views."""
    alone, crowd = Case(silos, 1, seed), Case(silos, CLIENTS, seed)
    courses = {step: alone.run(FedSGD(step, BATCH)) for step in GRID}
    central = max(GRID, key=lambda step: max(courses[step].validation, default=0))
    target = max(courses[central].test)
    yield f"K = {silos}, seed {seed}: central's step size {central:g}, target {target:.3f}"
    for step in (central * factor for factor in FACTORS):
        for s in ("0.5 silos", "silos"):
            yield f"  ABCD, s = {s}, at {step:.2g}: {alone.run(ABCD(10, step, BATCH, s)).says(target)}"
    step = alone.measured()
    yield f"  ABCD, measured, at {step:g}: {alone.run(ABCD(10, step, BATCH)).says(target)}"
    for step in (central * factor for factor in FACTORS):
        yield f"  clients: ABCD at {step:.2g}: {crowd.run(ABCD(10, step, BATCH)).says(target)}"
        yield f"  clients: TDCD at {step:.2g}: {crowd.run(TDCD(10, step, BATCH)).says(target)}"
    step = crowd.measured()
    yield f"  clients: ABCD, measured, at {step:g}: {crowd.run(ABCD(10, step, BATCH)).says(target)}"
    yield from _auto(alone)


def _auto(case: Case) -> Iterator[str]:
    """Linear blocks and all samples, as the theorem has it: its step size, and longer ones."""
    data = case.held.data
    loss = build_task(data, LINEAR, seed=case.seed).loss
    curvatures = tuple(block_curvature(silo.train, loss, bias=True) for silo in data.silos)
    step = Anticipation(case.silos, case.silos, curvatures, 0.0, quadratic=False).best
    ends = []
    for factor in LONGER:
        course = case.run(ABCD(10, factor * step, None, "silos", window=1), LINEAR)
        ends.append(f"{factor}: " + (f"{course.losses[-1]:.3f}" if course.diverged is None else "diverged"))
    yield (
        f'  linear blocks, "auto" is {step:.3g}; training loss after {ROUNDS} rounds at so many times that: '
        + ", ".join(ends)
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--silos", default="6,12", help="numbers of silos, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args(arguments)
    for silos in map(int, given.silos.split(",")):
        for seed in range(given.seeds):
            for line in lines(silos, seed):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
