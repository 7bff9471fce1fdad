"""Recipes carried out in a folder, one run at a time."""

from __future__ import annotations

import sys
from pathlib import Path

from crosshatch.cli.sweeping.sweep_progress import SweepLines
from crosshatch.reproduce.recipe import Recipe
from crosshatch.reproduce.running.carry_out_recipes import Desk, Done, carry_out
from crosshatch.reproduce.running.folder import Folder
from crosshatch.reproduce.writing.write import write_all
from crosshatch.runs.stopping import Stop, stop_on_signals
from crosshatch.sweeps.executors import LocalProcesses


def run(out: Path, *recipes: Recipe, data: Path | None = None, fresh: bool = False) -> Done:
    with stop_on_signals() as stop:
        desk = desk_of(out, stop, data)
        done = carry_out(recipes, desk, fresh=fresh)
    write_all(recipes, Folder(out), "quick", data, done.not_run, {"later": ("Somebody", "not there yet")})
    return done


def desk_of(out: Path, stop: Stop, data: Path | None) -> Desk:
    return Desk(Folder(out), data, "quick", SweepLines(sys.stdout, quiet=True), stop, lambda: LocalProcesses(1))
