"""Recipes carried out one after the other by what `crosshatch sweep` is made of; nothing is trained twice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosshatch.data.public_sets.in_folder import locate
from crosshatch.data.sources import named_file
from crosshatch.errors import DataError
from crosshatch.reproduce.recipe import Profile, Recipe
from crosshatch.reproduce.running.folder import Folder, rules_digest
from crosshatch.reproduce.running.keys import Keys, commit
from crosshatch.reproduce.running.look import SetState, look
from crosshatch.runs.stopping import Stop
from crosshatch.sweeps.course import SweepListener, work_off
from crosshatch.sweeps.jobs import Ended, Executor, Job, WorkItem

OUT_OF_TIME = "time"
_TIMES = 2  # its share of the processor time that a recipe may take


@dataclass
class Done:
    """What was trained, in how many seconds of processor time, and why recipes came to nothing: `not_run` by id."""

    trained: int = 0
    seconds: float = 0.0
    stopped: bool = False
    not_run: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Desk:
    """Everything a recipe is carried out with."""

    folder: Folder
    data: Path | None
    profile: Profile
    listener: SweepListener
    stop: Stop
    executor: Callable[[], Executor]  # a fresh one for every pile of jobs
    tell: Callable[[str], None] = lambda _: None


def carry_out(recipes: Sequence[Recipe], desk: Desk, *, fresh: bool = False) -> Done:
    """Train what is missing of each recipe; one that cannot be run, or takes too long, stops no other."""
    done, keys = Done(), Keys(desk.data)
    begun = [state for recipe in recipes for state in states(recipe, desk.folder, desk.profile, keys)] if fresh else []
    again = {one.key for state in begun for one in state.planned}
    for place, recipe in enumerate(recipes, 1):
        desk.tell(f"{recipe.id}, {place} of {len(recipes)}")
        try:
            why = require_data(recipe, desk.data) or _one(recipe, desk, keys, done, again)
        except DataError as error:
            why = str(error)
        if why:
            done.not_run[recipe.id] = why
            desk.tell(f"{recipe.id} not run: {why}")
        if done.stopped:
            break
    return done


def require_data(recipe: Recipe, folder: Path | None) -> str:
    """Which file is missing, in words; empty where none is."""
    for name in recipe.data:
        try:
            named_file(name, folder)
        except DataError as error:
            file = f"no file {locate(Path(), name)}: " if folder is None else ""
            return f"data absent: {file}{error}"
    return ""


def states(recipe: Recipe, folder: Folder, profile: Profile, keys: Keys) -> tuple[SetState, ...]:
    return tuple(look(runs, profile, keys, folder.find) for runs in recipe.sets_of(profile))


def _one(recipe: Recipe, desk: Desk, keys: Keys, done: Done, again: set[str]) -> str:
    """One recipe; returns why it came to nothing."""
    spent, failed = 0.0, dict[str, Ended]()
    while True:
        found = states(recipe, desk.folder, desk.profile, keys)
        missing = {one.key: one for state in found for one in state.missing}
        known = {one.key: one for state in found for one in state.planned if one.key in again}
        for one in known.values():
            desk.folder.remove(one)
        again -= known.keys()
        if not missing and not known:
            return ""
        desk.folder.begin((state.runs.name for state in found), commit(), rules_digest())
        # the last of a set are its largest: begun first, they keep nobody waiting at the end
        jobs = [one.job(desk.folder.path, desk.data) for one in reversed((missing | known).values())]
        limit = _TIMES * 60 * recipe.minutes - spent if desk.profile == "quick" else None
        ended, took = _work(jobs, desk, limit)
        spent += took
        done.seconds += took
        done.trained += sum(one.state in ("finished", "diverged") for one in ended.values())
        if desk.stop.requested:
            done.stopped = True
            return "stopped"
        if limit is not None and took > limit:
            return f"{OUT_OF_TIME} ({spent:.0f} s of processor time, its share is {60 * recipe.minutes:.0f} s)"
        failed = {name: one for name, one in ended.items() if one.state in ("failed", "refused")}
        if failed:
            name, first = next(iter(failed.items()))
            return f"{len(failed)} runs failed; the first, {name}: {first.why}"


def _work(jobs: Sequence[Job], desk: Desk, limit: float | None) -> tuple[Mapping[str, Ended], float]:
    """The jobs, until they took longer than they may; how they ended, and processor seconds."""
    took = 0.0
    desk.listener.begin(jobs, (), rung=0, rungs=1, rounds_after=0)

    def overdue(job: WorkItem, ended: Ended) -> bool:
        nonlocal took
        took += ended.seconds
        if ended.seconds:
            desk.folder.spend(job.name, ended.seconds)
        return limit is not None and took > limit

    with desk.executor() as executor:
        ended = work_off(jobs, executor, desk.listener, desk.stop, overdue=overdue)
    return ended, took
