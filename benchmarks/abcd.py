"""What anticipation and the window save: rounds, bytes and simulated time to a target for FedSGD, FedBCD and ABCD.

    python -m benchmarks.abcd --data DIR --out FILE [--set NAME,...] [--seeds 3] [--grid] [--table]

Blocks are networks with 32 hidden units, their outputs are added up, every silo is one party. A set's step size is
central's: of the grid the one with which FedSGD, which takes central training's steps, is best on the validation rows
within its rounds. The target is what FedSGD reaches on the test rows with it in `TARGET_ROUND` rounds, by the mean of
the seeds. With `--grid` every contestant has a step size of its own: that of the grid which is best on the validation
rows within `TRIED` rounds. Runs are written to FILE one by one, never twice; `--table` prints the tables.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import torch

from benchmarks.settings import CREDIT, Held, Setting, data_folder, hold_out
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.errors import TrainingError
from crosshatch.exchanges import Algorithm
from crosshatch.network import ConstantNetwork
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task
from crosshatch.task.metrics import evaluate

NETWORK = ConstantNetwork(t_comm=10.0, t_comp=1.0)
GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
SMALL_GRID = (0.0003, 0.001, 0.003, 0.01, 0.03)  # for labels in kelvin, which are not scaled
ROUNDS = {"fedsgd": 120, "others": 60}
TARGET_ROUND = 80
TRIED = 20
MLP = ModelSettings("mlp", hidden=(32,))
ELEMENTS = ("atomic_mass", "fie", "atomic_radius", "Density", "ElectronAffinity", "FusionHeat",
            "ThermalConductivity", "Valence")  # fmt: skip
COMPOUNDS = DataSettings(name="superconductivity", split_by="wtd_mean_atomic_mass")


def _silos(*groups: tuple[str, ...]) -> FederationSettings:
    return FederationSettings(silos=tuple(SiloSettings(one[0], groups=one) for one in groups))


def _pairs(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [(names[i], names[i + 1]) for i in range(0, len(names), 2)]


def _setting(name: str, data: DataSettings, federation: FederationSettings, metric: str, batch: int) -> Setting:
    return Setting(name, data, federation, MLP, metric, batch)


SETS = {
    one.name: one
    for one in (
        _setting("mnist-halves", DataSettings(name="mnist"), FederationSettings(silos=2, split="halves"),
                 "accuracy", 1000),
        _setting("mnist-quadrants", DataSettings(name="mnist"),
                 FederationSettings(silos=4, split="patches", patches=(2, 2)), "accuracy", 1000),
        _setting("mnist-strips", DataSettings(name="mnist"),
                 FederationSettings(silos=8, split="patches", patches=(8, 1)), "accuracy", 1000),
        _setting("credit-2", CREDIT, _silos(("demographic_limit",), ("pay_status", "bill_amount", "pay_amount")),
                 "auc", 2000),
        _setting("credit-4", CREDIT, _silos(("demographic_limit",), ("pay_status",), ("bill_amount",), ("pay_amount",)),
                 "auc", 2000),
        _setting("physionet-3", DataSettings(name="physionet2012", impute="mean", indicators=True, clip=4.0),
                 _silos(("vitals",), ("laboratory",), ("respiratory_fluid",)), "auc", 500),
        _setting("superconductivity-4", COMPOUNDS, _silos(("composition", *_pairs(ELEMENTS)[0]), *_pairs(ELEMENTS)[1:]),
                 "rmse", 1000),
        _setting("superconductivity-8", COMPOUNDS,
                 _silos(("composition", ELEMENTS[0]), *((name,) for name in ELEMENTS[1:])), "rmse", 1000),
        _setting("seizure-4", DataSettings(name="epileptic_seizure"), FederationSettings(silos=4), "auc", 1000),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Contestant:
    """A method with its local steps; `held`: the last silo alone has the labels."""

    method: str
    local_steps: int = 1
    held: bool = False
    anticipation: float | str = ABCD.anticipation
    window: int = ABCD.window

    def algorithm(self, step_size: float, batch_size: int) -> Algorithm:
        """With this step size."""
        if self.method == "fedsgd":
            return FedSGD(step_size, batch_size)
        if self.method == "abcd":
            return ABCD(self.local_steps, step_size, batch_size, self.anticipation, self.window)
        order = "sequential" if self.method == "fedbcd-s" else "parallel"
        return FedBCD(self.local_steps, step_size, batch_size, order=order)  # type: ignore[arg-type]

    def __str__(self) -> str:
        extra = f" s={self.anticipation} W={self.window}" if self.method == "abcd" else ""
        return f"{self.method} Q={self.local_steps}{extra}{' held' if self.held else ''}"


SGD = Contestant("fedsgd")
LOCAL_STEPS = (5, 10, 20)
METHODS = (
    SGD,
    *(Contestant("fedbcd", q, held) for q in LOCAL_STEPS for held in (False, True)),
    *(Contestant("fedbcd-s", q) for q in LOCAL_STEPS),
    *(Contestant("abcd", q, held) for q in LOCAL_STEPS for held in (False, True)),
)
VARIED = (
    *(Contestant("abcd", 10, anticipation=s, window=w)
      for s in ("0.5 silos", "0.6 silos", "0.75 silos", "silos") for w in (1, 2)
      if (s, w) != (ABCD.anticipation, ABCD.window)),
    Contestant("abcd", 10, window=5),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """The metric on validation and test rows after every round, bytes and simulated seconds of one round."""

    set: str
    contestant: str
    step_size: float
    seed: int
    validation: list[float]
    test: list[float]
    bytes: int
    seconds: float


def run(setting: Setting, held: Held, contestant: Contestant, step_size: float, seed: int) -> Run:
    """One run; it ends where it diverges, and counts as the worst from there on."""
    data = replace(held.data, label_silo=held.data.silos[-1].name if contestant.held else None)
    task = build_task(data, setting.model, seed=seed)
    algorithm = contestant.algorithm(step_size, setting.batch_size)
    simulator = Simulator(data, task, algorithm, seed=seed, network=NETWORK, threads=1)
    rounds = ROUNDS["fedsgd" if contestant.local_steps == 1 else "others"]
    seen: list[tuple[float, float]] = []
    worst = -math.inf if setting.higher else math.inf
    try:
        for _ in range(rounds):
            simulator.run_round()
            scores = simulator.scores([silo.test for silo in data.silos])
            parts = (slice(held.validation), slice(held.validation, None))
            one, other = (
                evaluate([setting.metric], scores[part], simulator.data.y_test[part], task.loss)[setting.metric]
                if torch.isfinite(scores[part]).all() else worst
                for part in parts
            )  # fmt: skip
            seen.append((one, other))
    except TrainingError:
        pass
    done = max(1, simulator.round)
    seen += [(worst, worst)] * (rounds - len(seen))
    return Run(
        setting.name, str(contestant), step_size, seed, [round(one, 5) for one, _ in seen],
        [round(other, 5) for _, other in seen], simulator.meter.bytes // done, simulator.seconds / done,
    )  # fmt: skip


class Book:
    """The runs of a file; a run that is there is not made again."""

    def __init__(self, path: Path) -> None:
        self.path, self.runs = path, dict[tuple[object, ...], Run]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            self._add(Run(**json.loads(line)))

    def _add(self, one: Run) -> None:
        self.runs[one.set, one.contestant, one.step_size, one.seed] = one

    def get(self, setting: Setting, held: Held, contestant: Contestant, step_size: float, seed: int) -> Run:
        """From the file, or made and written to it."""
        key = (setting.name, str(contestant), step_size, seed)
        if key not in self.runs:
            one = run(setting, held, contestant, step_size, seed)
            self._add(one)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(one)) + "\n")
            print(*key, f"best {_best(setting, one.test):.4g}", file=sys.stderr, flush=True)
        return self.runs[key]

    def of(self, setting: Setting, contestant: Contestant, step_size: float) -> list[Run]:
        """All seeds of it that there are."""
        return [one for key, one in self.runs.items() if key[:3] == (setting.name, str(contestant), step_size)]


def _best(setting: Setting, values: Sequence[float]) -> float:
    return max(values) if setting.higher else min(values)


def grid(setting: Setting) -> tuple[float, ...]:
    """The step sizes tried on a set."""
    return SMALL_GRID if setting.metric == "rmse" else GRID


def best_step(setting: Setting, book: Book, contestant: Contestant, rounds: int) -> float:
    """Of the grid the one with the best validation rows within so many rounds: by seed 0, with which all were tried.

    FedSGD's, which is everybody's, by the mean of the seeds there are.
    """
    sign = 1 if setting.higher else -1

    def quality(step_size: float) -> float:
        runs = [one for one in book.of(setting, contestant, step_size) if one.seed == 0 or contestant.local_steps == 1]
        found = [_best(setting, one.validation[:rounds]) for one in runs]
        return sign * statistics.fmean(found) if found else -math.inf

    return max(grid(setting), key=quality)


def reached(setting: Setting, runs: Sequence[Run], target: float) -> list[int | None]:
    """The first round of each run in which the test rows are at the target."""
    found: list[int | None] = []
    for one in runs:
        at = (r for r, value in enumerate(one.test, 1) if (value >= target if setting.higher else value <= target))
        found.append(next(at, None))
    return found


COLUMNS = {
    "FedSGD": SGD,
    "FedBCD, Q = 10": Contestant("fedbcd", 10),
    "FedBCD, Q = 10, held": Contestant("fedbcd", 10, held=True),
    "FedBCD in turn, Q = 10": Contestant("fedbcd-s", 10),
    **{f"ABCD, Q = {q}": Contestant("abcd", q) for q in LOCAL_STEPS},
    "ABCD, Q = 10, held": Contestant("abcd", 10, held=True),
}
VARIANTS = {
    f"s = {share}K, W = {w}": Contestant("abcd", 10, False, f"{share} silos".strip(), w)
    for share, w in (("0.5", 1), ("0.5", 2), ("0.5", 5), ("0.6", 1), ("0.6", 2), ("0.75", 1), ("0.75", 2), ("", 1),
                     ("", 2))
}  # fmt: skip


def table(
    book: Book, settings: Iterable[Setting], columns: Mapping[str, Contestant], *, own: bool, costs: bool = False
) -> Iterator[str]:
    """A line per set and a column per contestant, the first of which sets step size and target.

    Rounds to the target and the best of the test rows, or what the rounds cost.
    """
    yield "| set, target, step size | " + " | ".join(columns) + " |"
    yield "|---" * (len(columns) + 1) + "|"
    first = next(iter(columns.values()))
    for setting in settings:
        central = best_step(setting, book, first, ROUNDS["fedsgd"])
        runs = book.of(setting, first, central)
        if runs:
            target = statistics.fmean(_best(setting, one.test[:TARGET_ROUND]) for one in runs)
            cell = partial(_cell, setting, book, central=central, target=target, own=own, costs=costs)
            cells = " | ".join(map(cell, columns.values()))
            yield f"| {setting.name}, {setting.metric} {target:.4g}, {central:g} | {cells} |"


def _cell(
    setting: Setting, book: Book, contestant: Contestant, *, central: float, target: float, own: bool, costs: bool
) -> str:
    tuned = own and contestant.local_steps > 1
    step_size = best_step(setting, book, contestant, TRIED) if tuned else central
    runs = book.of(setting, contestant, step_size)
    if not runs:
        return "-"
    hits = reached(setting, runs, target)
    at = f" (at {step_size:g})" if own else ""
    if not costs:
        rounds = ", ".join("never" if hit is None else str(hit) for hit in hits)
        return f"{rounds}{at}; {statistics.fmean(_best(setting, one.test) for one in runs):.4g}"
    if None in hits:
        return f"never{at}"
    rounds_needed = statistics.fmean(filter(None, hits))
    return f"{rounds_needed * runs[0].bytes / 1e6:.3g} MB, {rounds_needed * runs[0].seconds:.0f} s{at}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the data sets, or CROSSHATCH_DATA")
    parser.add_argument("--out", type=Path, required=True, help="the file of the runs")
    parser.add_argument("--set", default=",".join(SETS), help="names, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--grid", action="store_true", help="every contestant with every step size")
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    given = parser.parse_args(arguments)
    book = Book(given.out)
    for setting in (SETS[name] for name in given.set.split(",")):
        if not given.table:
            held = hold_out(setting, data_folder(given.data), seed=0)
            for step_size in grid(setting):
                book.get(setting, held, SGD, step_size, 0)
            central = best_step(setting, book, SGD, ROUNDS["fedsgd"])
            for contestant in METHODS if given.grid else (*METHODS, *VARIED):
                step_size = central
                if given.grid and contestant != SGD:
                    for step_size in grid(setting):
                        book.get(setting, held, contestant, step_size, 0)
                    step_size = best_step(setting, book, contestant, TRIED)
                for seed in range(given.seeds):
                    book.get(setting, held, contestant, step_size, seed)
    if given.table:
        for columns in (COLUMNS,) if given.grid else (COLUMNS, {"FedSGD": SGD, **VARIANTS}):
            print("\n".join(table(book, SETS.values(), columns, own=given.grid)) + "\n")
        print("\n".join(table(book, SETS.values(), COLUMNS, own=given.grid, costs=True)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
