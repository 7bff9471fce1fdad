"""Every recipe from its data to its page, with few rounds: what takes minutes otherwise must not break there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.recipe import RunSet
from crosshatch.reproduce.writing.result import read_result
from tests.support.data_folder import Need
from tests.support.reproducing import run

ROUNDS = {"F1": 22}  # whose curves are compared from round 20 on
FEW = 3


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all recipes, since some read the same runs."""
    return tmp_path_factory.mktemp("reproduced")


def small(runs: RunSet) -> RunSet:
    """Few rounds, and one seed that stands for three."""
    rounds = ROUNDS.get(runs.name, FEW)
    few = (f"run.rounds={rounds}", f"run.checkpoint_every={rounds}", "evaluate.every=1")
    methods = tuple(replace(method, changes=(*method.changes, *few)) for method in runs.methods)
    search = None if runs.search is None else replace(runs.search, widen=0)
    return replace(runs, methods=methods, seeds={"quick": (1, 1, 1)}, search=search)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", list(RECIPES))
def test_from_data_to_page(recipe: str, need: Need, shared: Path) -> None:
    whole = RECIPES[recipe]
    folder = next((need(name) for name in whole.data), None)
    done = run(shared, replace(whole, sets=tuple(map(small, whole.sets))), data=folder)
    assert done.not_run == {}
    result = read_result(shared / recipe)
    assert result.rows
    assert result.readings["own"].checks
    assert (shared / recipe / "figure.svg").stat().st_size > 5000
