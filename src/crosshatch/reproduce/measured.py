"""The runs of a recipe as its rows are made of them: by set, method and reading, a run per seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosshatch.report.measures import first_reaching, parse_target
from crosshatch.report.runs import Run
from crosshatch.reproduce.judging.rows import NOT_REACHED


@dataclass(frozen=True)
class Series:
    """The runs of a method, in the order of the seeds, and the value that was chosen for it."""

    runs: tuple[Run, ...]
    value: float | None = None

    def to(self, target: str, cost: str = "round") -> tuple[float, ...]:
        """Rounds (or another cost) until a target such as `auc=0.8`; infinite where it was not reached.

        By the mean of as many evaluations as the config says in `evaluate.smooth`.
        """
        wanted = parse_target(target)
        found = (first_reaching(run.metrics, wanted, run.smooth) for run in self.runs)
        return tuple(NOT_REACHED if row is None else float(row[cost]) for row in found)

    def at(self, metric: str, round: float) -> tuple[float, ...]:
        """A metric at the last evaluation up to a round; infinite for a run that diverged before."""
        return tuple(_at(run, metric, round) for run in self.runs)

    def last(self, metric: str, of: int = 1) -> tuple[float, ...]:
        """The mean of a metric over the last evaluations; infinite for a run that diverged."""
        return tuple(
            NOT_REACHED if run.diverged else sum(row[metric] for row in run.metrics[-of:]) / len(run.metrics[-of:])
            for run in self.runs
        )

    def best(self, metric: str) -> tuple[float, ...]:
        """The highest mean of `evaluate.smooth` evaluations in a row."""
        return tuple(_highest([row[metric] for row in run.metrics], run.smooth) for run in self.runs)

    def first(self, metric: str) -> tuple[float, ...]:
        """Before the first round."""
        return tuple(run.metrics[0][metric] for run in self.runs)


@dataclass(frozen=True)
class Measured:
    """All series of a recipe. `profile` decides levels that fit its sizes."""

    profile: str
    series: Mapping[tuple[str, str, str], Series]  # set, method, reading
    tried: Mapping[tuple[str, float], Series] = field(default_factory=dict)  # method and value, of all searches

    def of(self, method: str, reading: str = "own") -> Series:
        """That of a method; no two sets of a recipe have methods of one name."""
        found = self.get(method, reading)
        assert found is not None, f"no runs of {method!r}"
        return found

    def get(self, method: str, reading: str = "own") -> Series | None:
        """That of a method; None where its set is not of this profile."""
        same = (series for (_, known, read), series in self.series.items() if known == method and read == reading)
        return next(same, None)

    @property
    def readings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(reading for _, _, reading in self.series))


def _at(run: Run, metric: str, round: float) -> float:
    rows = [row for row in run.metrics if row["round"] <= round]
    if run.diverged and run.metrics[-1]["round"] < round:
        return NOT_REACHED
    return float(rows[-1][metric])


def _highest(values: list[float], smooth: int) -> float:
    ends = range(min(smooth, len(values)), len(values) + 1)
    return max(sum(values[max(0, end - smooth) : end]) / min(smooth, end) for end in ends)
