"""What "measure" and "auto" are worth: the step size and Q they choose, and the test metric after the run's rounds.

    python -m benchmarks.choosing --data DIR --out FILE [--set NAME,...] [--seeds 3] [--table]

Sets and models are those of `benchmarks.abcd`, and some that ship with the package. Beside every choice stands the best
of a grid, which looked at the test rows: for each set the one Q and step size with the best mean over the seeds. Runs
are written to FILE one by one and not repeated; `--table` prints the table from it.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from benchmarks.abcd import MLP, SETS, grid
from benchmarks.settings import Setting, data_folder
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.data.build import build
from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.data.federated import FederatedData
from crosshatch.errors import TrainingError
from crosshatch.network import ConstantNetwork
from crosshatch.runs.config import Config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.run_settings import EvaluateSettings, RunSettings
from crosshatch.schedules import rate
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task

ROUNDS = 60
INTERVALS = {"abcd": (1, 5, 10, 20, 50), "fedbcd": (1, 5, 10)}
BUILT_IN = {
    one.name: one
    for one in (
        Setting("breast_cancer-2", DataSettings(name="breast_cancer"), FederationSettings(silos=2), MLP, "auc", 64),
        Setting("wine-3", DataSettings(name="wine"), FederationSettings(silos=3), MLP, "accuracy", 32),
        Setting("digits-4", DataSettings(name="digits"), FederationSettings(silos=4, split="patches", patches=(2, 2)),
                MLP, "accuracy", 256),
        Setting("diabetes-4", DataSettings(name="diabetes"), FederationSettings(silos=4), MLP, "rmse", 64),
    )
}  # fmt: skip
LEFT_OUT = ("mnist-strips", "superconductivity-8")
CHOSEN_FROM = {name: one for name, one in SETS.items() if name not in LEFT_OUT} | BUILT_IN


@dataclass(frozen=True)
class Contestant:
    """A method; None: its Q or step size is measured, or with `auto` its step size follows from the theorems.

    "carried" is ABCD with the step size that was measured for central training.
    """

    method: str
    local_steps: int | None = None
    step_size: float | None = None
    auto: bool = False

    def config(self, setting: Setting, seed: int) -> Config:
        """Of a run."""
        kind = {"abcd": ABCD, "fedbcd": FedBCD, "carried": Central}[self.method]
        steps = 1 if self.method == "carried" else self.local_steps
        named = {"local_steps": steps, "step_size": self.step_size}
        given = {key: value for key, value in named.items() if value is not None}
        left_open = tuple(key for key in named if key not in given)
        return Config(
            setting.data, setting.federation, setting.model,
            kind(batch_size=setting.batch_size, **given),
            None, {}, ConstantNetwork(), EvaluateSettings(metrics=(setting.metric,)),
            RunSettings(ROUNDS, name="choosing", seed=seed, threads=1),
            auto=left_open if self.auto else (), measured=() if self.auto else left_open,
        )  # fmt: skip


@dataclass(frozen=True)
class Run:
    """What was chosen and reached; seconds of the trials and of the rounds."""

    set: str
    contestant: str
    seed: int
    local_steps: int
    step_size: float
    metric: float
    choosing: float
    training: float


class Bench:
    """A set's data, read once per seed for all runs of the grid."""

    def __init__(self, setting: Setting, folder: Path | None) -> None:
        self.setting, self._folder = setting, folder
        self._built: dict[int, FederatedData] = {}

    def run(self, contestant: Contestant, seed: int) -> Run:
        """One run; where it diverges the metric is the worst there is."""
        told: list[float] = []
        config, setting = contestant.config(self.setting, seed), self.setting
        if config.auto or config.measured:
            prepared = prepare(config, folder=self._folder, tell=lambda _: told.append(time.perf_counter()))
            simulator, algorithm = prepared.simulator, prepared.config.algorithm
            if contestant.method == "carried":
                assert not isinstance(algorithm.step_size, str)
                algorithm = ABCD(contestant.local_steps or 10, algorithm.step_size, setting.batch_size)
                simulator = Simulator(simulator.data, simulator.task, algorithm, seed=seed, threads=1)
        else:
            if seed not in self._built:
                self._built[seed] = build(setting.data, setting.federation, self._folder, seed=seed)
            data, algorithm = self._built[seed], config.algorithm
            simulator = Simulator(data, build_task(data, setting.model, seed=seed), algorithm, seed=seed, threads=1)
        began = time.perf_counter()
        try:
            for _ in range(ROUNDS):
                simulator.run_round()
            spent = time.perf_counter() - began
            reached = simulator.evaluate([setting.metric])[setting.metric]
        except TrainingError:
            spent, reached = time.perf_counter() - began, -math.inf if setting.higher else math.inf
        assert not isinstance(algorithm.step_size, str)
        return Run(
            setting.name, str(contestant), seed, algorithm.local_steps, rate(algorithm.step_size, 0), reached,
            told[-1] - told[0] if told else 0.0, spent,
        )  # fmt: skip


class Book:
    """The runs of a file; a run that is there is not made again."""

    def __init__(self, path: Path, seeds: int) -> None:
        self.path, self.runs = path, dict[tuple[str, str, int], Run]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            one = Run(**json.loads(line))
            if one.seed < seeds:
                self.runs[one.set, one.contestant, one.seed] = one

    def add(self, bench: Bench, contestant: Contestant, seed: int) -> None:
        """Unless it is there."""
        key = (bench.setting.name, str(contestant), seed)
        if key not in self.runs:
            one = self.runs[key] = bench.run(contestant, seed)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
            print(*asdict(one).values(), file=sys.stderr, flush=True)

    def of(self, setting: Setting, contestant: Contestant) -> list[Run]:
        """All seeds of it that there are."""
        return [one for key, one in self.runs.items() if key[:2] == (setting.name, str(contestant))]


def on_grid(setting: Setting, method: str, intervals: Sequence[int]) -> list[Contestant]:
    """Every Q with every step size."""
    return [Contestant(method, steps, size) for steps in intervals for size in grid(setting)]


CHOICES: Mapping[str, tuple[Contestant, tuple[int, ...]]] = {
    "ABCD, Q = 10": (Contestant("abcd", 10), (10,)),
    "ABCD, Q = 10, central's": (Contestant("carried", 10), ()),
    "ABCD, Q too": (Contestant("abcd"), INTERVALS["abcd"]),
    "FedBCD, Q = 10": (Contestant("fedbcd", 10), (10,)),
    "FedBCD, Q too": (Contestant("fedbcd"), INTERVALS["fedbcd"]),
    'FedBCD, Q = 10, "auto"': (Contestant("fedbcd", 10, auto=True), ()),
}


def table(book: Book) -> Iterator[str]:
    """A line per set: what was chosen with every seed, the mean metric, behind it the best of the grid."""
    yield "| set, metric | " + " | ".join(CHOICES) + " |"
    yield "|---" * (len(CHOICES) + 1) + "|"
    for setting in CHOSEN_FROM.values():
        if any(one.set == setting.name for one in book.runs.values()):
            cells = [_cell(setting, book, *choice) for choice in CHOICES.values()]
            yield f"| {setting.name}, {setting.metric} | " + " | ".join(cells) + " |"
    yield ""
    for name, (contestant, _) in CHOICES.items():
        runs = [one for one in book.runs.values() if one.contestant == str(contestant) and one.training > 0]
        shares = [one.choosing / one.training for one in runs]
        if contestant.auto or not shares:
            continue
        median, most = statistics.median(shares), max(shares)
        yield f"{name}: trials took {median:.1f} times as long as the run (median; at most {most:.1f})"


def _cell(setting: Setting, book: Book, contestant: Contestant, intervals: Sequence[int]) -> str:
    runs = book.of(setting, contestant)
    if not runs:
        return "-"
    chosen = ", ".join(f"{one.step_size:.2g}" if contestant.local_steps else f"{one.local_steps}: {one.step_size:.2g}"
                       for one in runs)  # fmt: skip
    found = f"{chosen}; {_mean(runs):.4g}"
    others = [(_mean(tried), one) for one in on_grid(setting, contestant.method, intervals)
              if (tried := book.of(setting, one))]  # fmt: skip
    if not others:
        return found
    value, best = (max if setting.higher else min)(others, key=lambda pair: pair[0])
    where = f"{best.step_size:g}" if contestant.local_steps else f"{best.local_steps}: {best.step_size:g}"
    return f"{found} ({value:.4g} at {where})"


def _mean(runs: Sequence[Run]) -> float:
    return statistics.fmean(one.metric for one in runs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the data sets, or CROSSHATCH_DATA")
    parser.add_argument("--out", type=Path, required=True, help="the file of the runs")
    parser.add_argument("--set", default=",".join(CHOSEN_FROM), help="names, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    given = parser.parse_args(arguments)
    book = Book(given.out, given.seeds)
    if given.table:
        print("\n".join(table(book)))
        return 0
    for turn in range(3):  # what is chosen first, then the grid at Q = 10, then that of the other Qs
        for seed, name in product(range(given.seeds), given.set.split(",")):
            setting = CHOSEN_FROM[name]
            bench = Bench(setting, data_folder(given.data))
            grids = [one for method, intervals in INTERVALS.items() for one in on_grid(setting, method, intervals)]
            chosen = [contestant for contestant, _ in CHOICES.values()]
            at_ten = [one for one in grids if one.local_steps == 10]
            for contestant in (chosen, at_ten, [one for one in grids if one not in at_ten])[turn]:
                book.add(bench, contestant, seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
