"""What a study came to: every method with its costs and metrics, and the differences that a decision hangs on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosshatch.report.runs import Run
from crosshatch.studies.intervals import Interval, JudgedMethods
from crosshatch.studies.study_course import MethodRuns

ALL_COLUMNS = "boosted trees, all columns"
YARDSTICKS = "yardsticks"  # the folder with their scores


def boosted_alone(silo: str) -> str:
    """What the yardstick on the columns of one silo is called."""
    return f"boosted trees, {silo} alone"


@dataclass(frozen=True)
class StudyResult:
    """`made` has the methods in order, those without runs too. `base` is the silo that a federation has to beat.

    It is the one with the labels or, where all have them, the one that was best alone on the validation rows; `metric`
    is the one that sentences speak of, `higher` whether more of it is better; `without` says which yardsticks there
    are not, and why.
    """

    made: tuple[MethodRuns, ...]
    judged: JudgedMethods
    metrics: tuple[str, ...]
    metric: str
    higher: bool
    base: str
    others: tuple[str, ...]
    seeds: int
    validation_rows: int
    validation_added: bool
    chosen_by: str
    without: tuple[str, ...] = ()

    @property
    def federation(self) -> MethodRuns:
        """The config's own method."""
        return self.made[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """All that was judged, yardsticks last."""
        return tuple(self.judged.values)

    def gain(self, one: str, other: str) -> Interval | None:
        """How much better the one is than the other; None where one of them came to nothing."""
        if one not in self.judged.values or other not in self.judged.values:
            return None
        found = self.judged.difference(one, other, self.metric)
        return found if self.higher else -found

    def contribution(self, silo: str) -> Interval | None:
        """How much worse the federation is when a silo's rows are shuffled."""
        found = self.judged.loses(self.federation.method.name, silo, self.metric)
        return found if found is None or self.higher else -found

    @property
    def silos(self) -> tuple[str, ...]:
        """Those whose contribution is known."""
        return tuple(self.judged.lost.get(self.federation.method.name, {}))


def cost(made: MethodRuns, key: str) -> float:
    """Round, bytes or simulated seconds up to the round that was chosen, or the wall time of all; mean over seeds."""
    return fmean(_at(run)[key] if key != "wall_seconds" else run.summary[key] for run in made.runs)


def _at(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.summary["best_round"]
    return found
