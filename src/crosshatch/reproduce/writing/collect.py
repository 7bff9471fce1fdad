"""From the runs that are there to a result: rows, checks of every reading, verdict."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

from crosshatch.errors import RunError
from crosshatch.reproduce.judging.rows import Row, read
from crosshatch.reproduce.judging.rules import Check, JudgedReading, judge
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Profile, Recipe
from crosshatch.reproduce.running.folder import Folder, rules_digest
from crosshatch.reproduce.running.look import Searched, SetState
from crosshatch.reproduce.running.whereabouts import commit, machine, versions
from crosshatch.reproduce.writing.result import (
    Made,
    Ours,
    Reading,
    RecipeResult,
    ResultCheck,
    ResultFactor,
    ResultRow,
    ResultSearch,
    TriedValue,
)  # fmt: skip


@dataclass(frozen=True)
class Collected:
    """A result, and the runs it is made of, which figures draw; `measured` is None where something is missing."""

    result: RecipeResult
    measured: Measured | None
    rows: tuple[Row, ...] = ()


def collect(
    recipe: Recipe,
    found: Sequence[SetState],
    folder: Folder,
    profile: Profile,
    why: str = "",
    today: Callable[[], datetime.date] = datetime.date.today,
) -> Collected:
    """Judge a recipe by what is there; `why` it was not run to its end, where that is known."""
    missing = sum(len(state.missing) for state in found)
    measured = None if missing or not found else measured_of(found, profile)
    rows: list[Row] = []
    readings: dict[str, JudgedReading] = {}
    factors: list[ResultFactor] = []
    if measured is None:
        planned = sum(len(state.planned) for state in found)
        readings["own"] = JudgedReading("not run", why or f"{missing} of {planned} runs are missing")
    else:
        rows = recipe.measure(measured)
        for reading in measured.readings:
            try:
                ours = read(rows, reading)
            except RunError as error:
                readings[reading] = JudgedReading("not run", str(error))
                continue
            readings[reading] = judge(recipe.rules(ours))
            factors += [
                ResultFactor(reading, one.name, one.ours, one.paper, one.near, one.at_least)
                for one in recipe.factors(ours)
            ]
    own, began = readings["own"], folder.began(recipe.id)
    names = sorted({one.folder for state in found for one in state.planned if one not in state.missing})
    result = RecipeResult(
        id=recipe.id,
        paper=recipe.paper,
        place=recipe.place,
        shows=recipe.shows,
        profile=profile,
        verdict=own.verdict,
        why=own.why,
        seeds={runs.name: runs.seeds[profile] for runs in recipe.sets_of(profile)},
        rows=tuple(_row(row) for row in rows),
        readings={
            name: Reading(one.verdict, one.why, tuple(map(_check, one.checks))) for name, one in readings.items()
        },
        factors=tuple(factors),
        search=tuple(_search(state, one) for state in found for one in state.searched),
        same=recipe.same,
        differs=dict(recipe.differs),
        note=recipe.note,
        runs=tuple(names),
        made=Made(
            command=f"crosshatch reproduce run {recipe.id} --profile {profile}",
            versions=versions(),
            commit=commit(),
            began_at_commit=began.get("commit", ""),
            rules=rules_digest(),
            rules_first=began.get("rules", rules_digest()) == rules_digest(),
            machine=machine(),
            date=today().isoformat(),
            processor_seconds=round(sum(folder.seconds.get(name, 0.0) for name in names), 1),
        ),
    )
    return Collected(result, measured, tuple(rows))


def measured_of(found: Sequence[SetState], profile: str) -> Measured:
    """The series of all sets; a reading that one of them lacks is left out."""
    series = {
        (state.runs.name, method, reading): one
        for state in found
        for (method, reading), one in (state.series or {}).items()
    }
    everywhere = set.intersection(*({reading for _, reading in (state.series or {})} for state in found))
    tried = {key: one for state in found for key, one in state.tried.items()}
    return Measured(profile, {key: one for key, one in series.items() if key[2] in everywhere}, tried)


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _row(row: Row) -> ResultRow:
    ours = Ours(_number(row.mean), row.deviation, tuple(map(_number, row.ours)))
    return ResultRow(row.setting, row.what, row.reading, row.paper, ours)


def _check(one: Check) -> ResultCheck:
    numbers = {name: tuple(map(_number, ours)) for name, ours in one.numbers.items()}
    return ResultCheck(one.name, one.words, one.main, one.outcome, one.of_means, one.by_seed, numbers)


def _search(state: SetState, one: Searched) -> ResultSearch:
    assert state.runs.search is not None
    tried = tuple(TriedValue(score.value, score.arrived, _number(score.total)) for score in one.scores)
    search = state.runs.search
    return ResultSearch(
        state.runs.name, one.method, search.setting, search.choose, tried, one.own, one.at_edge, one.common
    )
