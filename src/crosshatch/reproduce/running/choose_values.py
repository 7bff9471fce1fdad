"""Which value of the search a method takes: its own best, or one for all; never by the test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf, log10
from statistics import fmean

from crosshatch.report.measures import best_row
from crosshatch.report.runs import Run
from crosshatch.reproduce.recipe import Method, RunSet
from crosshatch.sweeps.choice import Choice, parse_choice

Tried = Mapping[float, tuple[Run, ...]]
"""The runs of a method by value, in the order of the seeds."""


@dataclass(frozen=True)
class Score:
    """How good a value is: with how many seeds it arrived (or ran well), and what counted, summed over them.

    `fallback` tells values apart where a target was reached with no seed at all.
    """

    value: float
    arrived: int
    total: float
    fallback: float

    @property
    def rank(self) -> tuple[float, float, float]:
        """Smaller is better."""
        return (-self.arrived, self.total, self.fallback)


def score(value: float, runs: Sequence[Run], choice: Choice) -> Score:
    assert choice.metric is not None
    higher = choice.higher and choice.target is None
    counted = [None if run.diverged else choice.counted(run) for run in runs]
    found = [row[choice.metric] for row in counted if row is not None]
    total = sum(found) if found else inf
    return Score(value, len(found), -total if higher and found else total, _fallback(runs, choice))


def _fallback(runs: Sequence[Run], choice: Choice) -> float:
    """The best that was reached of what the target is about, over the seeds that did not diverge; smaller is better."""
    if choice.target is None:
        return 0.0
    metric, sign = choice.target.metric, -1.0 if choice.target.higher else 1.0
    well = [run for run in runs if not run.diverged]
    if not well:
        return inf
    known = {metric: choice.target.higher}
    return fmean(sign * best_row(run.metrics, metric, known)[metric] for run in well) + (len(runs) - len(well)) * 10.0


def own_best(tried: Tried, choice: Choice) -> tuple[float, tuple[Score, ...]]:
    """The best value, and the scores of all in ascending order of the values."""
    scores = tuple(score(value, tried[value], choice) for value in sorted(tried))
    return min(scores, key=lambda one: one.rank).value, scores


def beyond(tried: Tried, chosen: float) -> float | None:
    """The value beyond an edge that was chosen, about as far from it as its neighbour; None where it is none.

    >>> beyond({0.1: (), 0.3: (), 1.0: ()}, 1.0), beyond({0.001: (), 0.003: ()}, 0.001)
    (3.0, 0.0003)
    """
    values = sorted(tried)
    if len(values) < 2 or chosen not in (values[0], values[-1]):
        return None
    neighbour = values[1] if chosen == values[0] else values[-2]
    far = chosen * chosen / neighbour
    decade = floor(log10(far))
    round_ones = (float(f"{digit}e{decade + up}") for up in (0, 1) for digit in (1, 3))
    return min(round_ones, key=lambda one: abs(log10(one / far)))


def common_value(runs: RunSet, tried: Mapping[str, Tried]) -> float | None:
    """The largest value at which all methods of the largest Q arrive with two thirds of the seeds, if any."""
    assert runs.search is not None
    choice, names = parse_choice(runs.search.choose), runs.search.common_by
    everywhere = set.intersection(*(set(tried[method.name]) for method in runs.methods))
    for value in sorted(everywhere, reverse=True):
        scores = [score(value, tried[name][value], choice) for name in names]
        if all(3 * one.arrived >= 2 * len(tried[name][value]) for name, one in zip(names, scores, strict=True)):
            return value
    return None


def searched(method: Method, runs: RunSet) -> bool:
    """Whether there is anything to choose."""
    return runs.search is not None and len(runs.search.values if method.values is None else method.values) > 1
