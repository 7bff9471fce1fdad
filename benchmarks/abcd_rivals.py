"""ABCD against FedSGD with momentum or Adam, which keep their moments: rounds to the targets of `benchmarks.abcd`.

    python -m benchmarks.abcd_rivals --data DIR --out FILE [--set "NAME;..."]

The rule, written down before the seeds that count were run:

- Sets, models, batches and targets are those of the first table of docs/algorithms/abcd-results.md. "batch 50" is the
  same set with batches of 50; its target is what plain FedSGD reaches on the test rows in `TARGET_ROUND` rounds at the
  step size that is best on the validation rows within these rounds, by the mean of the `CHOOSING` seeds.
- Every contestant has a step size of its own, chosen by the `CHOOSING` seeds on the validation rows: that with which
  these reach their target in the fewest rounds, by the mean of the seeds. Their target is what plain FedSGD reaches on
  them in `TARGET_ROUND` rounds. A seed that has not arrived after `LIMIT` rounds counts as twice as many; of equal
  step sizes the one that came closest is chosen. They are half decades, five to begin with; as long as the best is the
  first or the last one more is tried, up to nine.
- The better of momentum and Adam is the one with fewer rounds to the validation rows' target, by the same seeds.
- The `COUNTING` seeds count: the first round, up to `LIMIT`, in which the test rows are at the target. They choose
  nothing, and who chooses does not see the test rows.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.abcd import SETS, TARGET_ROUND
from benchmarks.settings import Held, Setting, data_folder, hold_out, measure
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.errors import TrainingError
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task
from crosshatch.task.optimisers import Adam, Momentum, Optimiser

CHOOSING, COUNTING = (100, 101), (200, 201, 202)
LIMIT, MOST = 120, 9
TARGETS = {
    "mnist-halves": 0.9249, "mnist-quadrants": 0.9497, "mnist-strips": 0.9428, "credit-2": 0.7688, "credit-4": 0.7618,
    "physionet-3": 0.8414, "superconductivity-4": 18.17, "superconductivity-8": 18.39, "seizure-4": 0.8915,
}  # fmt: skip
SMALL = ("credit-2", "credit-4", "physionet-3", "superconductivity-4")
RACES = SETS | {
    one.name: one for one in (replace(SETS[name], name=f"{name}, batch 50", batch_size=50) for name in SMALL)
}


@dataclass(frozen=True)
class Rival:
    """ABCD, or FedSGD with the moments of an optimiser; the half decade in the middle of those tried first."""

    name: str
    local_steps: int = 1
    optimiser: Optimiser | None = None
    middle: int = -1
    middle_in_kelvin: int = -5


PLAIN, OURS = Rival("FedSGD"), Rival("ABCD, Q = 10", 10)
MOMENTUM = Rival("FedSGD, momentum", 1, Momentum(state="kept"), -3, -7)
ADAM = Rival("FedSGD, Adam", 1, Adam(state="kept"), -4, -2)
RIVALS = (PLAIN, MOMENTUM, ADAM, OURS)


def step_size(half_decade: int) -> float:
    """1 and 3 times the powers of ten.

    >>> [step_size(number) for number in (-3, -2, 0, 1)]
    [0.03, 0.1, 1.0, 3.0]
    """
    return float(f"{(1, 3)[half_decade % 2]}e{half_decade // 2}")


class Book:
    """The metric after every round of every run, in a file; a run that is there is not made again."""

    def __init__(self, path: Path, folder: Path | None) -> None:
        self.path, self.folder = path, folder
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ()
        self.runs: dict[tuple[object, ...], list[float]] = {tuple(key): found for key, found in map(json.loads, lines)}
        self._held: dict[str, Held] = {}

    def get(self, setting: Setting, rival: Rival, half_decade: int, seed: int, rows: str, stop: float) -> list[float]:
        """On "validation" or "test" rows, until they are at `stop`."""
        key = (setting.name, rival.name, half_decade, seed, rows)
        if key not in self.runs:
            if setting.name not in self._held:
                self._held = {setting.name: hold_out(setting, self.folder, seed=0)}
            self.runs[key] = found = _run(
                setting, self._held[setting.name], rival, step_size(half_decade), seed, rows, stop
            )
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, found]) + "\n")
            print(*key, f"{len(found)} rounds, {found[-1]:.4g}", file=sys.stderr, flush=True)
        return self.runs[key]


def _run(
    setting: Setting, held: Held, rival: Rival, step_size: float, seed: int, rows: str, stop: float
) -> list[float]:
    size = setting.batch_size
    algorithm = FedSGD(step_size, size) if rival.local_steps == 1 else ABCD(rival.local_steps, step_size, size)
    task = replace(build_task(held.data, setting.model, seed=seed), optimiser=rival.optimiser)
    simulator = Simulator(held.data, task, algorithm, seed=seed, threads=1)
    seen = [math.nan]
    try:
        while len(seen) <= LIMIT and not arrived(setting, seen[-1], stop):
            simulator.run_round()
            seen.append(measure(simulator, held, setting.metric, rows))
    except TrainingError:
        pass  # it diverged
    return seen[1:] or seen


def arrived(setting: Setting, value: float, target: float) -> bool:
    """Never with NaN."""
    return value >= target if setting.higher else value <= target


class Race:
    """The rivals on one set."""

    def __init__(self, book: Book, setting: Setting) -> None:
        self._book, self.setting = book, setting
        self._never = math.inf if setting.higher else -math.inf  # a target that nobody reaches
        best = self._climb(PLAIN, lambda half_decade: (-self._level(PLAIN, half_decade),))
        self._validation = self._sign * self._level(PLAIN, best)
        self.target = TARGETS.get(setting.name) or self._sign * self._level(PLAIN, best, "test")
        self.choices = {rival: self._choose(rival) for rival in RIVALS}
        self.better = min((MOMENTUM, ADAM), key=lambda rival: self.choices[rival][1])

    @property
    def _sign(self) -> int:
        return 1 if self.setting.higher else -1

    def rounds(self, rival: Rival) -> list[int | None]:
        """To the target on the test rows, of the seeds that count."""
        half_decade, _ = self.choices[rival]
        return [self._needed(rival, half_decade, seed, "test", self.target) for seed in COUNTING]

    def _needed(self, rival: Rival, half_decade: int, seed: int, rows: str, target: float) -> int | None:
        stop = target if rival != PLAIN or rows == "test" else self._never
        seen = self._book.get(self.setting, rival, half_decade, seed, rows, stop)
        return next((r for r, value in enumerate(seen, 1) if arrived(self.setting, value, target)), None)

    def _level(self, rival: Rival, half_decade: int, rows: str = "validation", rounds: int = TARGET_ROUND) -> float:
        """The best of these rows, larger is better, by the mean of the seeds that choose."""
        stop = self._never if rival == PLAIN else self._validation
        runs = [self._book.get(self.setting, rival, half_decade, seed, rows, stop)[:rounds] for seed in CHOOSING]
        found = [[self._sign * value for value in seen if not math.isnan(value)] for seen in runs]
        return statistics.fmean(max(values, default=-1e9) for values in found)

    def _choose(self, rival: Rival) -> tuple[int, float]:
        """Half decade, and the rounds of the validation rows."""

        def cost(half_decade: int) -> tuple[float, float]:
            needed = [self._needed(rival, half_decade, seed, "validation", self._validation) for seed in CHOOSING]
            rounds = statistics.fmean(2 * LIMIT if hit is None else hit for hit in needed)
            return rounds, -self._level(rival, half_decade, rounds=LIMIT)

        best = self._climb(rival, cost)
        return best, cost(best)[0]

    def _climb(self, rival: Rival, cost: Callable[[int], tuple[float, ...]]) -> int:
        """The half decade of the least cost."""
        middle = rival.middle_in_kelvin if self.setting.metric == "rmse" else rival.middle
        costs = {number: cost(number) for number in range(middle - 2, middle + 3)}
        while (best := min(costs, key=costs.__getitem__)) in (min(costs), max(costs)) and len(costs) < MOST:
            further = best + (1 if best == max(costs) else -1)
            costs[further] = cost(further)
        return best


def table(races: Iterable[Race]) -> Iterator[str]:
    """A line per set: the rounds of the seeds that count, and ABCD's mean over those of two others."""
    yield f"| set, target | {' | '.join(rival.name for rival in RIVALS)} | of plain | of the better |"
    yield "|---" * (len(RIVALS) + 3) + "|"
    for race in races:
        cells = []
        for rival in RIVALS:
            rounds = ", ".join("never" if hit is None else str(hit) for hit in race.rounds(rival))
            cells.append(f"{rounds} (at {step_size(race.choices[rival][0]):g})")
        shares = f"{_share(race, PLAIN)} | {_share(race, race.better)}, {race.better.name.removeprefix('FedSGD, ')}"
        yield f"| {race.setting.name}, {race.setting.metric} {race.target:.4g} | {' | '.join(cells)} | {shares} |"


def _share(race: Race, rival: Rival) -> str:
    ours, theirs = race.rounds(OURS), race.rounds(rival)
    if None in ours or None in theirs:
        return "-"
    return f"{statistics.fmean(filter(None, ours)) / statistics.fmean(filter(None, theirs)):.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, and print the table at the end."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the data sets, or CROSSHATCH_DATA")
    parser.add_argument("--out", type=Path, required=True, help="the file of the runs")
    parser.add_argument("--set", default=";".join(RACES), help="names, with semicolons")
    given = parser.parse_args(arguments)
    book = Book(given.out, data_folder(given.data))
    for line in table(Race(book, RACES[name]) for name in given.set.split(";")):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
