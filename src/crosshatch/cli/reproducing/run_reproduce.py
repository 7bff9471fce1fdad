"""`crosshatch reproduce`: list, run and page."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from crosshatch.cli.pipes import say
from crosshatch.cli.plain_command import same_again
from crosshatch.cli.sweeping.sweep_progress import choose_listener
from crosshatch.errors import ConfigError, RunError, meant
from crosshatch.report.units import human_seconds
from crosshatch.reproduce.all_recipes import LATER, RECIPES
from crosshatch.reproduce.recipe import PROFILES, Profile, Recipe
from crosshatch.reproduce.running.carry_out_recipes import Desk, carry_out, require_data, states
from crosshatch.reproduce.running.folder import Folder
from crosshatch.reproduce.running.keys import Keys
from crosshatch.reproduce.writing.docs_page import docs_page
from crosshatch.reproduce.writing.recipe_page import verdict
from crosshatch.reproduce.writing.result import RecipeResult
from crosshatch.reproduce.writing.write import write_all
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.run_settings import available_cores
from crosshatch.runs.stopping import INTERRUPTED, in_hand, stop_on_signals
from crosshatch.sweeps.executors import LocalProcesses

LACKING = "not there yet"


def profile_of(text: str) -> Profile:
    for profile in PROFILES:
        if text == profile:
            return profile
    raise ConfigError(f"--profile {text}: {meant(text, PROFILES)}choose {' or '.join(PROFILES)}")


def recipes_of(ids: Sequence[str]) -> list[Recipe]:
    """The recipes that are named, each once: by id, by paper, or all."""
    found: dict[str, Recipe] = {}
    papers = {recipe.paper.lower() for recipe in RECIPES.values()} | {paper.lower() for paper in LATER.values()}
    for name in ids:
        lower = name.lower()
        if lower in LATER or lower in {paper.lower() for paper in LATER.values()}:
            say(f"{name}: {LACKING}", sys.stderr)
        elif lower != "all" and lower not in RECIPES and lower not in papers:
            known = (*RECIPES, *sorted(papers), "all")
            raise ConfigError(
                f"unknown recipe '{name}': {meant(name, known)}`crosshatch reproduce list` names them all"
            )
        found |= {one.id: one for one in RECIPES.values() if lower in (one.id, one.paper.lower(), "all")}
    return list(found.values())


def show_list(profile: str, out: Path, data: Path | None, *, as_json: bool) -> None:
    which, folder, keys = profile_of(profile), Folder(_folder(out)), Keys(data)
    lines = []
    for recipe in RECIPES.values():
        found = states(recipe, folder, which, keys)
        planned = {one.key for state in found for one in state.planned}
        missing = {one.key for state in found for one in state.missing}
        left = recipe.minutes * 60 * len(missing) / len(planned) if which == "quick" else None
        names, there, known = list(recipe.data) or ["made here"], not require_data(recipe, data), planned - missing
        lines.append({
            "id": recipe.id, "paper": recipe.paper, "place": recipe.place, "shows": recipe.shows, "data": names,
            "there": there, "runs": len(planned), "known": len(known), "seconds": left,
        })  # fmt: skip
        if not as_json:
            time = "" if left is None else f", about {human_seconds(round(left))} of processor time"
            say(f"{recipe.id:<20} {recipe.paper}, {recipe.place}: {recipe.shows}")
            say(f"{'':<20} data: {', '.join(names)} ({'there' if there else 'absent'}); "
                f"{len(known)} of {len(planned)} runs known{time}")  # fmt: skip
    if as_json:
        later = [{"id": one, "paper": paper, "there": False, "remark": LACKING} for one, paper in LATER.items()]
        say(json.dumps([*lines, *later], indent=2))
        return
    for name, paper in LATER.items():
        say(f"{name:<20} {paper}: {LACKING}")


def run_reproduce(
    ids: Sequence[str], profile: str, *, jobs: int | None, out: Path, data: Path | None, fresh: bool, quiet: bool
) -> int:
    """Train what is missing, write what came of it; the exit code."""
    which, recipes, folder = profile_of(profile), recipes_of(ids), Folder(out)
    count = jobs if jobs is not None else available_cores()
    if count < 1:
        raise ConfigError(f"--jobs {jobs}: at least 1 run at a time")
    hear = choose_listener(quiet=quiet)
    with in_hand(), one_writer(out, "reproducing"), stop_on_signals() as stop, hear as listener:
        folder.require_own()
        desk = Desk(
            folder,
            data,
            which,
            listener,
            stop,
            lambda: LocalProcesses(count),
            lambda line: say(line, sys.stderr),
        )
        done = carry_out(recipes, desk, fresh=fresh)
        results = write_all(recipes, folder, which, data, done.not_run, everything())
    _conclude(results, out)
    took = f" in {human_seconds(round(done.seconds))} of processor time" if done.trained else ""
    say(f"{done.trained} runs trained{took}")
    if done.stopped:
        say(f"stopped; what is done is kept; go on with: {same_again(without='--fresh')}", sys.stderr)
        return INTERRUPTED
    return 0


def write_pages(profile: str, out: Path, data: Path | None, docs: Path | None) -> None:
    """All pages anew, of whatever is there."""
    which, folder = profile_of(profile), Folder(_folder(out))
    if not (out / "runs").is_dir():
        raise RunError(f"no runs in {out}: `crosshatch reproduce run` makes them, or name another folder by --out")
    with one_writer(out, "reproducing"):
        folder.require_own()
        results = write_all(list(RECIPES.values()), folder, which, data, {}, everything())
    _conclude(results, out)
    if docs is not None:
        with writing(docs.parent, "another --docs"):
            write_whole(docs, docs_page(results, LATER, folder.seconds).encode())
        say(f"page: {docs}")


def everything() -> dict[str, tuple[str, str]]:
    """What stands in the index about a recipe without a result: its paper, and why there is none."""
    here = {one.id: (f"{one.paper}, {one.place}", "not run: not asked for yet") for one in RECIPES.values()}
    return here | {name: (paper, LACKING) for name, paper in LATER.items()}


def _folder(out: Path) -> Path:
    if out.exists() and not out.is_dir():
        raise RunError(f"the folder {out} is a file: choose another --out")
    return out


def _conclude(results: Sequence[RecipeResult], out: Path) -> None:
    for result in results:
        say(f"{result.id:<20} {verdict(result.verdict, result.why)}")
    say(f"pages: {out / 'index.html'}")
