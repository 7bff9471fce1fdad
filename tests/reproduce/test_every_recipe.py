"""Every recipe from its data to its page, with few rounds: what takes minutes otherwise must not break there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.recipe import RunSet
from crosshatch.reproduce.writing.result import read_result
from tests.conftest import Need
from tests.reproduce.test_whole import run

ROUNDS = ("run.rounds=6", "run.checkpoint_every=6", "evaluate.every=1")


def small(runs: RunSet) -> RunSet:
    """Six rounds, and one seed that stands for three."""
    methods = tuple(replace(method, changes=(*method.changes, *ROUNDS)) for method in runs.methods)
    search = None if runs.search is None else replace(runs.search, widen=0)
    return replace(runs, methods=methods, seeds={"quick": (1, 1, 1)}, search=search)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", list(RECIPES))
def test_from_data_to_page(recipe: str, need: Need, tmp_path: Path) -> None:
    whole = RECIPES[recipe]
    folder = next((need(name) for name in whole.data), None)
    done = run(tmp_path, replace(whole, sets=tuple(map(small, whole.sets))), data=folder)
    assert done.not_run == {}
    result = read_result(tmp_path / recipe)
    assert result.rows
    assert result.readings["own"].checks
    assert (tmp_path / recipe / "figure.svg").stat().st_size > 5000
