"""Training until targets are reached: rounds, bytes and simulated seconds, and step sizes chosen on validation rows."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.settings import Held
from crosshatch.errors import CrosshatchError, TrainingError
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.metrics import evaluate


@dataclass(frozen=True)
class Spent:
    """What it took until some rows reached a target."""

    round: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Search:
    """What is looked for: the first evaluation at which a metric, meaned over the last `smooth` ones, is a target's.

    Step sizes are compared by the rounds until the validation rows reach `targets[main]`. A run ends when the test rows
    have reached the last target too, or after `rounds`.
    """

    metric: str
    targets: tuple[float, ...]
    main: int
    rounds: int
    every: int = 1
    smooth: int = 1


@dataclass
class Course:
    """One run: when validation and test rows reached each target, and the best of the test metric."""

    validation: dict[float, Spent] = field(default_factory=dict)
    test: dict[float, Spent] = field(default_factory=dict)
    best: float = math.nan
    rounds: int = 0
    last: float = math.nan


def train(
    simulator: Simulator, held: Held, search: Search, *, limit: int, bytes_of: Callable[[Simulator], int] | None = None
) -> Course:
    """Train until all targets are reached; `limit` rounds without the validation rows at the main one end it too."""
    course = Course()
    seen: deque[tuple[float, float]] = deque(maxlen=search.smooth)
    main = search.targets[search.main]
    while len(course.test) < len(search.targets) or main not in course.validation:
        if simulator.round >= (search.rounds if main in course.validation else min(limit, search.rounds)):
            break
        try:
            simulator.run_round()
            course.rounds = simulator.round
            if simulator.round % search.every:
                continue
            seen.append(_measure(simulator, held, search.metric))
        except TrainingError:
            break
        if len(seen) < search.smooth:
            continue
        validation, test = (statistics.fmean(values) for values in zip(*seen, strict=True))
        sent = simulator.meter.bytes if bytes_of is None else bytes_of(simulator)
        now = Spent(simulator.round, sent, simulator.seconds)
        for target in search.targets:
            if validation >= target:
                course.validation.setdefault(target, now)
            if test >= target:
                course.test.setdefault(target, now)
        course.last = test
        course.best = test if math.isnan(course.best) else max(course.best, test)
    return course


def _measure(simulator: Simulator, held: Held, metric: str) -> tuple[float, float]:
    """The metric on the validation and on the test rows, from one pass."""
    data, cut = simulator.data, held.validation
    with torch.no_grad():
        scores = simulator.scores([silo.test for silo in data.silos])
    loss = simulator.task.loss
    parts = ((scores[:cut], data.y_test[:cut]), (scores[cut:], data.y_test[cut:]))
    one, other = (evaluate([metric], rows, labels, loss)[metric] for rows, labels in parts)
    return one, other


@dataclass(frozen=True)
class Chosen:
    """A contestant's step size (None: none reached the target), and a run for each seed."""

    step_size: float | None
    courses: tuple[Course, ...]

    def spent(self, target: float) -> list[Spent] | None:
        """What each seed took on the test rows; None unless all of them reached the target."""
        found = [course.test[target] for course in self.courses if target in course.test]
        return found if found and len(found) == len(self.courses) else None

    def mean(self, target: float, what: Callable[[Spent], float]) -> float | None:
        """The mean over seeds of a cost, None unless all reached the target."""
        found = self.spent(target)
        return None if found is None else statistics.fmean(what(one) for one in found)


def choose(
    name: str,
    run: Callable[[float, int, int], Course],
    step_sizes: Sequence[float],
    search: Search,
    *,
    seeds: int = 1,
) -> Chosen:
    """The step size that takes the validation rows to the main target in the fewest rounds, summed over the seeds.

    `run(step_size, seed, limit)` trains; a step size behind the best so far is given up. Where none gets there with
    every seed, the one that does with most of them counts, of equals the one with the fewest rounds.
    """
    main = search.targets[search.main]
    best, least = Chosen(None, ()), search.rounds * seeds + 1
    tried: list[Chosen] = []
    for step_size in step_sizes:
        total, courses = 0, []
        for seed in range(seeds):
            limit = min(search.rounds, least - total - 1)
            course = _timed(name, run, step_size, seed, limit, search)
            courses.append(course)
            if main not in course.validation:
                break
            total += course.validation[main].round
        tried.append(Chosen(step_size, tuple(courses)))
        if main in courses[-1].validation and total < least:
            best, least = tried[-1], total
    if best.step_size is not None:
        return best
    return min(tried, key=lambda one: _behind(one, main))


def _behind(one: Chosen, main: float) -> tuple[int, int]:
    """How far a step size is from the target: fewer seeds with it, then more rounds."""
    there = [course.validation[main].round for course in one.courses if main in course.validation]
    return -len(there), sum(there)


def _timed(
    name: str, run: Callable[[float, int, int], Course], step_size: float, seed: int, limit: int, search: Search
) -> Course:
    start = time.process_time()
    course = run(step_size, seed, limit)
    seen = [
        f"{target:g}: {_rounds(course.validation, target)}/{_rounds(course.test, target)}" for target in search.targets
    ]
    print(
        f"{name} step size {step_size:g} seed {seed}: validation/test rounds {', '.join(seen)}; "
        f"best {course.best:.4f}, {course.rounds} rounds, {time.process_time() - start:.0f} s",
        file=sys.stderr,
        flush=True,
    )
    return course


def _rounds(reached: dict[float, Spent], target: float) -> str:
    return str(reached[target].round) if target in reached else "-"


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and, of several, the standard deviation."""
    mean = f"{statistics.fmean(values):.{digits}g}"
    return mean if len(values) < 2 else f"{mean} ± {statistics.stdev(values):.2g}"


def publish(table: Iterable[str], out: Path | None) -> int:
    """Print a table's lines as they come, on stderr, and whole at the end; add it to `out`. The program's exit code."""
    lines = []
    try:
        for line in table:
            lines.append(line)
            print(line, file=sys.stderr, flush=True)
    except CrosshatchError as error:
        print(error, file=sys.stderr)
        return 2
    text = "\n".join(lines) + "\n"
    print(text)
    if out is not None:
        with out.open("a", encoding="utf-8") as file:
            file.write(text)
    return 0
