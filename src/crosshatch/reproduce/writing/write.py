"""The files about recipes: in each one's folder, and the index over all."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import msgspec

from crosshatch.reproduce.recipe import Profile, Recipe
from crosshatch.reproduce.running.carry_out_recipes import require_data, states
from crosshatch.reproduce.running.folder import Folder
from crosshatch.reproduce.running.keys import Keys
from crosshatch.reproduce.writing.collect import Collected, collect
from crosshatch.reproduce.writing.figure import draw
from crosshatch.reproduce.writing.recipe_page import index_page, recipe_page
from crosshatch.reproduce.writing.result import NAME, RecipeResult, read_result
from crosshatch.runs.files import write_whole, writing


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
        collected = collect(recipe, found, folder, profile, why)
        with writing(folder.path):
            _write_one(recipe, collected, folder.path / recipe.id)
        results.append(collected.result)
    known = {one.id: one for one in results}
    before = [name for name in everything if name not in known and (folder.path / name / NAME).is_file()]
    known |= {name: read_result(folder.path / name) for name in before}
    told = {name: known.get(name, why) for name, why in everything.items()} | known
    with writing(folder.path):
        write_whole(folder.path / "index.html", index_page(told).encode())
    return results


def _write_one(recipe: Recipe, collected: Collected, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    result, svg = collected.result, None
    for name in ("figure.svg", "figure.png"):
        (place / name).unlink(missing_ok=True)
    if collected.measured is not None and find_spec("matplotlib") is not None:  # the extra [figures]
        figures = draw(recipe.panels, collected.measured, collected.rows)
        for name, content in figures.items():
            write_whole(place / name, content)
        svg = _inline(figures["figure.svg"].decode())
    write_whole(place / "table.csv", table(result).encode())
    text = json.dumps(msgspec.to_builtins(result), indent=2, allow_nan=False)
    write_whole(place / NAME, f"{text}\n".encode())
    write_whole(place / "index.html", recipe_page(result, svg).encode())


def table(result: RecipeResult) -> str:
    """A line per row of the result, one column per seed."""
    out = io.StringIO()
    written = csv.writer(out, lineterminator="\n")
    seeds = max((len(row.ours.seeds) for row in result.rows), default=0)
    head = ("setting", "what", "step_size", "paper", "mean", "deviation")
    written.writerow([*head, *(f"seed_{i + 1}" for i in range(seeds))])
    for row in result.rows:
        told = (row.ours.mean, row.ours.deviation, *row.ours.seeds)
        written.writerow([row.setting, row.what, row.reading, row.paper, *told])
    return out.getvalue()


def _inline(svg: str) -> str:
    """A figure as part of a page: without the declaration and the fixed size of a file; not much larger than that."""
    begin = svg.index("<svg")
    head, rest = svg[begin:].split(">", 1)
    found = re.search(r'\swidth="([0-9.]+)pt"', head)
    wide = float(found[1]) if found else 500.0
    sizes = f' style="min-width: {wide:.0f}px; max-width: {1.7 * wide:.0f}px"'
    return re.sub(r'\s(width|height)="[^"]*"', "", head) + sizes + ">" + rest
