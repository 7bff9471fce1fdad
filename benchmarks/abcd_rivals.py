"""ABCD against FedSGD with momentum or Adam, which keep their moments: rounds to the targets of `benchmarks.abcd`.

    python -m benchmarks.abcd_rivals --data DIR --out FILE [--set "NAME;..."] [--table]

The rule, written down before the seeds that count were run:

- Sets, models, batches and targets are those of the first table of docs/algorithms/abcd.md. "batch 50" is the same
  set with batches of 50 samples; its target is what plain FedSGD reaches on the test rows in `TARGET_ROUND` rounds,
  by the mean of the seeds that choose, with the step size that is best on the validation rows within these rounds.
- Every contestant has `LIMIT` rounds and a step size of its own, chosen by `CHOOSING` seeds on the validation rows:
  that with which these reach their target in the fewest rounds, by the mean of the seeds; a seed that never arrives
  counts as twice `LIMIT`. The validation rows' target is what plain FedSGD reaches on them in `TARGET_ROUND` rounds.
- Of step sizes with equal rounds the one with the better validation rows within `LIMIT` rounds is chosen. They are
  half decades, five to begin with; as long as the best is the first or the last one more is tried, up to nine.
- The better of momentum and Adam is the one with fewer rounds to the validation rows' target, by the same seeds.
- `COUNTING` seeds count: the first round in which the test rows are at the target. They choose nothing.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.abcd import SETS, TARGET_ROUND, Book, Contestant, Run, reached
from benchmarks.settings import Held, Setting, data_folder, hold_out
from crosshatch.task.optimisers import Adam, Momentum, Optimiser

CHOOSING, COUNTING = (100, 101, 102), (200, 201, 202, 203, 204)
LIMIT = 120
MOST = 9  # step sizes of a contestant
TARGETS = {
    "mnist-halves": 0.9249, "mnist-quadrants": 0.9497, "mnist-strips": 0.9428, "credit-2": 0.7688, "credit-4": 0.7618,
    "physionet-3": 0.8414, "superconductivity-4": 18.17, "superconductivity-8": 18.39, "seizure-4": 0.8915,
}  # fmt: skip
SMALL = ("credit-2", "credit-4", "physionet-3", "superconductivity-4")
RACES = SETS | {
    one.name: one for one in (replace(SETS[name], name=f"{name}, batch 50", batch_size=50) for name in SMALL)
}


@dataclass(frozen=True)
class Rival(Contestant):
    """FedSGD with the moments of an optimiser, or ABCD; all have equally many rounds."""

    moments: Optimiser | None = None
    middle: tuple[int, int] = (-1, -5)  # of the half decades tried first: for classes, and for labels in kelvin

    @property
    def rounds(self) -> int:
        """Of a run."""
        return LIMIT

    @property
    def optimiser(self) -> Optimiser | None:
        """Kept from round to round."""
        return self.moments

    def __str__(self) -> str:
        name = f"{self.method} Q={self.local_steps}, {self.rounds} rounds"
        return name if self.moments is None else f"{name}, {self.moments.name} kept"


PLAIN, OURS = Rival("fedsgd"), Rival("abcd", 10)
MOMENTS = {
    "momentum": Rival("fedsgd", moments=Momentum(state="kept"), middle=(-3, -7)),
    "Adam": Rival("fedsgd", moments=Adam(state="kept"), middle=(-4, -2)),
}


def step_size(half_decade: int) -> float:
    """1 and 3 times the powers of ten.

    >>> [step_size(number) for number in (-3, -2, 0, 1)]
    [0.03, 0.1, 1.0, 3.0]
    """
    return float(f"{(1, 3)[half_decade % 2]}e{half_decade // 2}")


@dataclass(frozen=True)
class Choice:
    """A step size as a number of half decades, and the rounds in which it reached the validation rows' target."""

    half_decade: int
    rounds: float


class Race:
    """The rivals on one set, whose runs are kept in a book; without data all of them are there."""

    def __init__(self, book: Book, setting: Setting, held: Held | None) -> None:
        self._book, self._held, self.setting = book, held, setting
        self._sign = 1 if setting.higher else -1
        best = self._climb(PLAIN, lambda half_decade: (-self._sign * self._level(PLAIN, half_decade, TARGET_ROUND),))
        self._validation = self._level(PLAIN, best, TARGET_ROUND)
        self.target = TARGETS.get(setting.name, self._level(PLAIN, best, TARGET_ROUND, rows="test"))
        self.choices = {rival: self._choose(rival) for rival in (PLAIN, *MOMENTS.values(), OURS)}

    @property
    def better(self) -> str:
        """Momentum or Adam."""
        return min(MOMENTS, key=lambda name: self.choices[MOMENTS[name]].rounds)

    def rounds(self, rival: Rival) -> list[int | None]:
        """To the target on the test rows, of the seeds that count."""
        runs = self._runs(rival, self.choices[rival].half_decade, COUNTING)
        return reached(self.setting, runs, self.target)

    def _runs(self, rival: Rival, half_decade: int, seeds: Sequence[int]) -> list[Run]:
        size = step_size(half_decade)
        if self._held is None:
            return [one for one in self._book.of(self.setting, rival, size) if one.seed in seeds]
        return [self._book.get(self.setting, self._held, rival, size, seed) for seed in seeds]

    def _level(self, rival: Rival, half_decade: int, rounds: int, *, rows: str = "validation") -> float:
        """The best of these rows within so many rounds, by the mean of the seeds that choose."""
        runs = self._runs(rival, half_decade, CHOOSING)
        ends = ((one.test if rows == "test" else one.validation)[:rounds] for one in runs)
        return statistics.fmean(max(end) if self.setting.higher else min(end) for end in ends)

    def _choose(self, rival: Rival) -> Choice:
        def cost(half_decade: int) -> tuple[float, float]:
            runs = [replace(one, test=one.validation) for one in self._runs(rival, half_decade, CHOOSING)]
            hits = reached(self.setting, runs, self._validation)
            rounds = statistics.fmean(2 * LIMIT if hit is None else hit for hit in hits)
            return rounds, -self._sign * self._level(rival, half_decade, LIMIT)

        best = self._climb(rival, cost)
        return Choice(best, cost(best)[0])

    def _climb(self, rival: Rival, cost: Callable[[int], tuple[float, ...]]) -> int:
        """The half decade of the least cost."""
        middle = rival.middle[self.setting.metric == "rmse"]
        costs = {number: cost(number) for number in range(middle - 2, middle + 3)}
        while (best := min(costs, key=costs.__getitem__)) in (min(costs), max(costs)) and len(costs) < MOST:
            further = best + (1 if best == max(costs) else -1)
            costs[further] = cost(further)
        return best


def table(races: Iterable[Race]) -> Iterator[str]:
    """A line per set: the rounds of the seeds that count, and ABCD's mean over that of two others."""
    yield "| set, target | FedSGD | FedSGD, momentum | FedSGD, Adam | ABCD, Q = 10 | of plain | of the better |"
    yield "|---" * 7 + "|"
    for race in races:
        cells = []
        for rival in (PLAIN, *MOMENTS.values(), OURS):
            rounds = ", ".join("never" if hit is None else str(hit) for hit in race.rounds(rival))
            cells.append(f"{rounds} (at {step_size(race.choices[rival].half_decade):g})")
        shares = f"{_share(race, PLAIN)} | {_share(race, MOMENTS[race.better])}, {race.better}"
        yield f"| {race.setting.name}, {race.setting.metric} {race.target:.4g} | {' | '.join(cells)} | {shares} |"


def _share(race: Race, rival: Rival) -> str:
    ours, theirs = race.rounds(OURS), race.rounds(rival)
    if None in ours or None in theirs:
        return "-"
    return f"{statistics.fmean(filter(None, ours)) / statistics.fmean(filter(None, theirs)):.2f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the data sets, or CROSSHATCH_DATA")
    parser.add_argument("--out", type=Path, required=True, help="the file of the runs")
    parser.add_argument("--set", default=";".join(RACES), help="names, with semicolons")
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    given = parser.parse_args(arguments)
    book, settings = Book(given.out), [RACES[name] for name in given.set.split(";")]
    if given.table:
        print("\n".join(table(Race(book, setting, None) for setting in settings)))
        return 0
    for setting in settings:
        race = Race(book, setting, hold_out(setting, data_folder(given.data), seed=0))
        for rival in race.choices:
            race.rounds(rival)
    return 0


if __name__ == "__main__":
    sys.exit(main())
