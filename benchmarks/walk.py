"""How far a reader has to walk through the package to follow one round: calls, files, and crossings between files.

    python -m benchmarks.walk [--json FILE] [--against FILE]

Counted are calls of the package's functions in a round, the files these lie in, and those of the calls whose caller
lies in another file of the package; what torch or the standard library calls is called by whoever called them.
Comprehensions and lambdas belong to the function around them, a generator counts once, returns not at all. Functions
that dataclasses generate have no file, and do not count.
"""

from __future__ import annotations

import argparse
import inspect
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import crosshatch
from crosshatch import FederationSettings, ModelSettings, Simulator, build_task, federate, load_dataset
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD

LINEAR = ModelSettings("linear")
PACKAGE = Path(crosshatch.__file__).parent
WARM_UP = 3
ROUNDS = 24


@dataclass(frozen=True)
class Walk:
    """Of one round."""

    calls: int
    files: int
    crossings: int


@dataclass(frozen=True)
class Count:
    """Of a case: the plainest of many rounds, the one with the fewest calls; and the mean of all of them.

    Rounds differ: where clients' shares of the batch are very unequal they are computed in more stacks.
    """

    calls: int
    files: int
    crossings: int
    mean_calls: float
    mean_crossings: float


@dataclass(frozen=True)
class Case:
    """A federation on the breast cancer data with linear blocks, and its algorithm."""

    federation: FederationSettings
    algorithm: ABCD | TDCD | HSGD | MTCD
    model: ModelSettings = LINEAR

    def simulator(self) -> Simulator:
        """Before its first round."""
        data = federate(load_dataset("breast_cancer"), self.federation, seed=0)
        return Simulator(data, build_task(data, self.model, seed=0), self.algorithm, seed=0, threads=1)


TEN_CLIENTS = FederationSettings(silos=2, clients=10)
CASES: Mapping[str, Case] = {
    "TDCD, Q = 1": Case(TEN_CLIENTS, TDCD(local_steps=1, batch_size=64)),
    "TDCD, Q = 5": Case(TEN_CLIENTS, TDCD(local_steps=5, batch_size=64)),
    "ABCD, Q = 5, labels held": Case(
        FederationSettings(silos=2, clients=10, labels="silo1"), ABCD(local_steps=5, batch_size=64)
    ),
    "HSGD, 3 groups, head": Case(
        FederationSettings(silos=2, clients=10, groups=3),
        HSGD(global_steps=5, local_steps=5),
        ModelSettings("linear", fusion="head", outputs=4),
    ),
    "MTCD, 2 tokens": Case(FederationSettings(silos=6), MTCD(tokens=2), ModelSettings("linear", bias=False)),
}


def walk(run: Callable[[], object], package: Path = PACKAGE) -> Walk:
    """What happens in the package while `run` is called."""
    prefix = f"{package}/"
    called: list[tuple[str, str | None]] = []  # the files of a function and of its caller
    generators: set[FrameType] = set()  # kept, so that no other frame takes one's identity

    def within(code: CodeType) -> bool:
        return code.co_filename.startswith(prefix)

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not within(code) or code.co_name.startswith("<"):
            return
        if code.co_flags & inspect.CO_GENERATOR:
            if frame in generators:
                return  # it goes on
            generators.add(frame)
        caller = frame.f_back
        while caller is not None and not within(caller.f_code):
            caller = caller.f_back
        called.append((code.co_filename, None if caller is None else caller.f_code.co_filename))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    crossings = sum(caller is not None and caller != file for file, caller in called)
    return Walk(len(called), len({file for file, _ in called}), crossings)


def count(case: Case, rounds: int = ROUNDS) -> Count:
    """A case's rounds after the first few, in which things are made that stay."""
    simulator = case.simulator()
    for _ in range(WARM_UP):
        simulator.run_round()
    walks = [walk(simulator.run_round) for _ in range(rounds)]
    return Count(
        **asdict(min(walks, key=lambda one: (one.calls, one.crossings))),
        mean_calls=round(statistics.fmean(one.calls for one in walks), 1),
        mean_crossings=round(statistics.fmean(one.crossings for one in walks), 1),
    )


def table(counts: Mapping[str, Count], before: Mapping[str, Count] | None = None) -> str:
    """The counts as Markdown; with those of another time in every cell: before, now, and the ratio."""
    columns = {
        "calls": "calls",
        "files": "files",
        "crossings": "crossings",
        "mean_calls": "calls, mean",
        "mean_crossings": "crossings, mean",
    }
    lines = ["| round | " + " | ".join(columns.values()) + " |", "|---" + "|---:" * len(columns) + "|"]
    for name, now in counts.items():
        old = None if before is None else before.get(name)
        cells = [_cell(getattr(now, key), None if old is None else getattr(old, key)) for key in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(now: float, old: float | None) -> str:
    """
    >>> _cell(150, None), _cell(150, 200)
    ('150', '200 to 150 (0.75)')
    """
    return f"{now:g}" if old is None else f"{old:g} to {now:g} ({now / old:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Count all cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the counts to this file too")
    parser.add_argument("--against", type=Path, help="a file written before: print both, and the ratios now / before")
    given = parser.parse_args(arguments)
    before = None
    if given.against:
        stored = json.loads(given.against.read_text(encoding="utf-8"))
        before = {name: Count(**numbers) for name, numbers in stored.items()}
    counts = {name: count(case) for name, case in CASES.items()}
    print(table(counts, before))
    if given.json:
        content = {name: asdict(one) for name, one in counts.items()}
        given.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
