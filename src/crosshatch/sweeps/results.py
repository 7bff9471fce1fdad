"""What the runs of a sweep came to, point by point, and which point is best."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosshatch.report.runs import Run
from crosshatch.sweeps.choice import Choice
from crosshatch.sweeps.jobs import Ended, Job
from crosshatch.sweeps.sweep import Point


@dataclass(frozen=True)
class RunResult:
    """One run: how it ended, its directory where there is one, and the evaluation that counts (None: none does)."""

    job: Job
    ended: Ended
    run: Run | None = None
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class PointResult:
    """A point and its runs, one per seed; none where its config was refused. `dropped`: for better ones, early."""

    point: Point
    runs: tuple[RunResult, ...]
    dropped: bool = False

    @property
    def rows(self) -> list[Mapping[str, Any]]:
        """The evaluations that count, of the seeds that have one."""
        return [result.row for result in self.runs if result.row is not None]

    def values(self, key: str) -> list[float]:
        """Of each seed that has it."""
        return [row[key] for row in self.rows if key in row]

    @property
    def remark(self) -> str:
        """What to know before the numbers are compared; empty where all ended well."""
        if self.point.config is None:
            return "refused"
        count = len(self.runs)
        states = [result.ended.state for result in self.runs]
        found = {word: states.count(word) for word in ("diverged", "refused", "failed", "stopped")}
        found["not reached"] = sum(result.row is None for result in self.runs) - sum(found.values())
        words = [f"{word} {times} of {count}" for word, times in found.items() if times]
        return ", ".join([*words, "ended early"] if self.dropped else words)

    @property
    def why(self) -> str:
        """What the first run that ended badly has to say, rather one that failed than one that diverged."""
        ends = sorted((result.ended for result in self.runs), key=lambda one: one.state == "diverged")
        return self.point.refused or next((one.why for one in ends if one.why), "")


def ranked(results: Sequence[PointResult], choice: Choice) -> list[PointResult]:
    """The best first: fewest seeds without a value, then the mean over the others; equal ones in the grid's order."""

    def order(result: PointResult) -> tuple[bool, int, float]:
        assert choice.metric is not None
        values = result.values(choice.metric)
        if not values:
            return (result.dropped, len(result.runs), 0.0)
        return (result.dropped, len(result.runs) - len(values), fmean(values) * (-1 if choice.higher else 1))

    return sorted((result for result in results if result.runs), key=order)


@dataclass(frozen=True)
class Apart:
    """What points do not all have in common, and the points by it; one whose seeds differ is in two lists."""

    what: str = ""
    points: tuple[tuple[str, ...], ...] = ()


def points_apart(results: Sequence[PointResult], choice: Choice) -> Apart:
    """Why points cannot be ranked: the rows that the choice goes by differ, or a file has changed from run to run.

    Nothing is said of runs of which it cannot be told.
    """
    by_rows: dict[str, dict[str, list[str]]] = {}
    by_data: dict[str, dict[str, list[str]]] = {}
    for result in results:
        for run in (one.run for one in result.runs):
            if run is not None and (found := run.fingerprint) is not None:
                name, config = result.point.name, {key: run.config.get(key) for key in ("data", "federation")}
                rows = found.validation if choice.on_validation else found.split
                by_rows.setdefault(found.key, {}).setdefault(rows, []).append(name)
                same = json.dumps([found.key, config], sort_keys=True, default=str)
                by_data.setdefault(same, {}).setdefault(found.digest, []).append(name)
    rows = "validation rows" if choice.on_validation else "training rows"
    for what, worlds in (("data, which have changed from run to run", by_data), (rows, by_rows)):
        for groups in worlds.values():
            if len(groups) > 1:
                return Apart(what, tuple(tuple(dict.fromkeys(names)) for names in groups.values()))
    return Apart()
