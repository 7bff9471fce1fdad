"""From the runs that are there to rows, checks and verdicts, and the files about them; and the index over all."""

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from math import isfinite
from pathlib import Path

import msgspec

from crosshatch.errors import RunError
from crosshatch.reproduce.judging.rows import Row, read
from crosshatch.reproduce.judging.rules import Check, JudgedReading, judge
from crosshatch.reproduce.measured import Measured
from crosshatch.reproduce.recipe import Profile, Recipe
from crosshatch.reproduce.running.carry_out_recipes import require_data, states
from crosshatch.reproduce.running.folder import Folder, rules_digest
from crosshatch.reproduce.running.keys import Keys, commit, machine, versions
from crosshatch.reproduce.running.look import Searched, SetState
from crosshatch.reproduce.writing.figure import draw
from crosshatch.reproduce.writing.recipe_page import index_page, recipe_page
from crosshatch.reproduce.writing.result import (
    NAME,
    Made,
    Ours,
    Reading,
    RecipeResult,
    ResultCheck,
    ResultFactor,
    ResultRow,
    ResultSearch,
    TriedValue,
    read_result,
)  # fmt: skip
from crosshatch.runs.files import write_csv, write_json, write_whole, writing


def collect(
    recipe: Recipe,
    found: Sequence[SetState],
    folder: Folder,
    profile: Profile,
    why: str = "",
) -> tuple[RecipeResult, Measured | None, list[Row]]:
    """Judge a recipe by what is there; `why` it was not run to its end, where that is known.

    Beside the result it gives the runs it is made of, which figures draw (None where something is missing), and rows.
    """
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
    own, began = readings["own"], folder.began(runs.name for runs in recipe.sets_of(profile))
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
        rows=tuple(
            ResultRow(
                row.setting,
                row.what,
                row.reading,
                row.paper,
                Ours(_number(row.mean), row.deviation, tuple(map(_number, row.ours))),
            )
            for row in rows
        ),
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
            began_at_commit=", ".join(dict.fromkeys(one["commit"] for one in began)),
            rules=rules_digest(),
            rules_first=all(one["rules"] == rules_digest() for one in began),
            machine=machine(),
            date=datetime.date.today().isoformat(),
            processor_seconds=round(sum(folder.seconds.get(name, 0.0) for name in names), 1),
        ),
    )
    return result, measured, rows


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


def write_all(
    recipes: Sequence[Recipe],
    folder: Folder,
    profile: Profile,
    data: Path | None,
    not_run: Mapping[str, str],
    everything: Mapping[str, tuple[str, str]],
) -> list[RecipeResult]:
    """Verdicts, figures and pages of recipes from the runs there are, and the index; trains nothing.

    The index is over `everything`: where and why not by id, which counts for those without a result from before.
    """
    keys, results = Keys(data), []
    for recipe in recipes:
        why = not_run.get(recipe.id, "") or require_data(recipe, data)
        found = states(recipe, folder, profile, keys)
        result, measured, rows = collect(recipe, found, folder, profile, why)
        figures = {}
        if measured is not None and find_spec("matplotlib") is not None:  # the extra [figures]
            figures = draw(recipe.panels, measured, rows)
        with writing(folder.path):
            _write_one(result, figures, folder.path / recipe.id)
        results.append(result)
    known = {one.id: one for one in results}
    before = [name for name in everything if name not in known and (folder.path / name / NAME).is_file()]
    known |= {name: read_result(folder.path / name) for name in before}
    told = {name: known.get(name, why) for name, why in everything.items()} | known
    with writing(folder.path):
        write_whole(folder.path / "index.html", index_page(told).encode())
    return results


def _write_one(result: RecipeResult, figures: Mapping[str, bytes], place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name in ("figure.svg", "figure.png"):
        (place / name).unlink(missing_ok=True)
    for name, content in figures.items():
        write_whole(place / name, content)
    svg = _inline(figures["figure.svg"].decode()) if figures else None
    write_csv(place / "table.csv", table(result))
    write_json(place / NAME, msgspec.to_builtins(result), allow_nan=False)
    write_whole(place / "index.html", recipe_page(result, svg).encode())


def table(result: RecipeResult) -> Iterator[list[object]]:
    """A line per row of the result, one column per seed."""
    seeds = max((len(row.ours.seeds) for row in result.rows), default=0)
    head = ("setting", "what", "step_size", "paper", "mean", "deviation")
    yield [*head, *(f"seed_{i + 1}" for i in range(seeds))]
    for row in result.rows:
        yield [row.setting, row.what, row.reading, row.paper, row.ours.mean, row.ours.deviation, *row.ours.seeds]


def _inline(svg: str) -> str:
    """A figure as part of a page: without the declaration and the fixed size of a file; not much larger than that."""
    begin = svg.index("<svg")
    head, rest = svg[begin:].split(">", 1)
    found = re.search(r'\swidth="([0-9.]+)pt"', head)
    wide = float(found[1]) if found else 500.0
    sizes = f' style="min-width: {wide:.0f}px; max-width: {1.7 * wide:.0f}px"'
    return re.sub(r'\s(width|height)="[^"]*"', "", head) + sizes + ">" + rest
