"""How far a set of runs is: which runs are missing, and once none is, which values were chosen.

A function of the runs that are there, so that a recipe that was stopped goes on where it was, and a page can be made
of half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crosshatch.report.runs import Run
from crosshatch.reproduce.measured import Series
from crosshatch.reproduce.recipe import Method, Profile, RunSet
from crosshatch.reproduce.running.choose_values import Score, beyond, common_value, own_best, searched
from crosshatch.reproduce.running.keys import Keys
from crosshatch.reproduce.running.planned_runs import PlannedRun, plan, values_of
from crosshatch.sweeps.choice import parse_choice

Find = Callable[[PlannedRun], Run | None]
"""The finished run of a plan; None where there is none."""


@dataclass(frozen=True)
class Searched:
    """What was tried for a method, with scores, and what was chosen; `at_edge`: beyond it nothing was tried."""

    method: str
    scores: tuple[Score, ...]
    own: float
    at_edge: bool
    common: float | None


@dataclass(frozen=True)
class SetState:
    """A set as it is: all runs known to be needed so far, those missing of them, and the rest once none is."""

    runs: RunSet
    planned: tuple[PlannedRun, ...]
    missing: tuple[PlannedRun, ...]
    searched: tuple[Searched, ...] = ()
    series: Mapping[tuple[str, str], Series] | None = None  # by method and reading
    tried: Mapping[tuple[str, float], Series] = field(default_factory=dict)  # by method and value


def look(runs: RunSet, profile: Profile, keys: Keys, find: Find) -> SetState:
    """The state of a set; values beyond a chosen edge are asked for once all before them are there."""
    planned: dict[tuple[str, float | None], tuple[PlannedRun, ...]] = {}
    for method in runs.methods:
        planned |= {(method.name, value): plan(runs, method, value, profile, keys) for value in values_of(runs, method)}
    found: dict[str, Run] = {}

    def missing() -> tuple[PlannedRun, ...]:
        everything = [one for many in planned.values() for one in many]
        found.update({one.key: run for one in everything if one.key not in found and (run := find(one)) is not None})
        return tuple({one.key: one for one in everything if one.key not in found}.values())

    for _ in range(0 if runs.search is None else runs.search.widen):
        if absent := missing():
            return SetState(runs, _all(planned), absent)
        more = _further(runs, planned, found)
        if not more:
            break
        planned |= {(method.name, value): plan(runs, method, value, profile, keys) for method, value in more}
    if absent := missing():
        return SetState(runs, _all(planned), absent)
    return _chosen(runs, planned, found)


def _all(planned: Mapping[tuple[str, float | None], tuple[PlannedRun, ...]]) -> tuple[PlannedRun, ...]:
    return tuple({one.key: one for many in planned.values() for one in many}.values())


def _tried(
    method: Method, planned: Mapping[tuple[str, float | None], tuple[PlannedRun, ...]], found: Mapping[str, Run]
) -> dict[float, tuple[Run, ...]]:
    return {
        value: tuple(found[one.key] for one in many)
        for (name, value), many in planned.items()
        if name == method.name and value is not None
    }


def _further(
    runs: RunSet, planned: Mapping[tuple[str, float | None], tuple[PlannedRun, ...]], found: Mapping[str, Run]
) -> list[tuple[Method, float]]:
    """One value more for every method whose best is at an edge."""
    more = []
    for method in runs.methods if runs.search is not None else ():
        assert runs.search is not None
        if searched(method, runs):
            tried = _tried(method, planned, found)
            value = beyond(tried, own_best(tried, parse_choice(runs.search.choose))[0])
            more += [] if value is None else [(method, value)]
    return more


def _chosen(
    runs: RunSet, planned: Mapping[tuple[str, float | None], tuple[PlannedRun, ...]], found: Mapping[str, Run]
) -> SetState:
    series: dict[tuple[str, str], Series] = {}
    if runs.search is None:
        for method in runs.methods:
            ours = tuple(found[one.key] for one in planned[method.name, None])
            series[method.name, "own"] = Series(ours)
        return SetState(runs, _all(planned), (), (), series)
    tried = {method.name: _tried(method, planned, found) for method in runs.methods}
    common = common_value(runs, tried) if runs.search.common_by else None
    told = []
    for method in runs.methods:
        mine = tried[method.name]
        best, scores = own_best(mine, parse_choice(runs.search.choose))
        told.append(Searched(method.name, scores, best, beyond(mine, best) is not None, common))
        series[method.name, "own"] = Series(mine[best], best)
        if common is not None:
            series[method.name, "common"] = Series(mine[common], common)
    every = {(name, value): Series(many, value) for name, by in tried.items() for value, many in by.items()}
    return SetState(runs, _all(planned), (), tuple(told), series, every)
