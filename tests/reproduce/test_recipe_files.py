"""Recipes are short values: no training code in them, and no number of a paper outside the data file."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import crosshatch.reproduce
from crosshatch.reproduce.all_recipes import LATER, RECIPES
from crosshatch.reproduce.papers import TABLES
from crosshatch.reproduce.recipe import PROFILES, Profile
from crosshatch.reproduce.running.planned_runs import build, values_of

HOME = Path(crosshatch.reproduce.__file__).parent
FILES = sorted((HOME / "recipes").rglob("*.py"))
LONGEST = 80
FORBIDDEN = ("torch", "crosshatch.simulator", "crosshatch.local", "crosshatch.algorithms", "crosshatch.parties")


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def papers_numbers() -> set[float]:
    """Those that could not be anything else: settings such as Q = 5 are numbers of a paper, too."""
    tables = tomllib.loads(TABLES.read_text(encoding="utf-8"))["number"]
    found = {float(value) for table in tables for value in table["rows"].values()}
    return {value for value in found if value > 60 or value != int(value)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_short_and_without_training(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert [name for name in imported(ast.parse(text)) if name.startswith(FORBIDDEN)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_number_of_a_paper(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    literals = {float(node.value) for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, int | float)}  # fmt: skip
    assert literals & papers_numbers() == set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "paper":
            assert not isinstance(node.value, ast.Constant)


def test_every_number_says_where_it_is_from_and_is_asked_for() -> None:
    for table in tomllib.loads(TABLES.read_text(encoding="utf-8"))["number"]:
        assert table["table"].startswith(("Table", "Figure"))
        settings = {method.name for runs in RECIPES[table["recipe"]].sets for method in runs.methods}
        assert set(table["rows"]) <= settings


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_config_is_built_and_checked(recipe: str, profile: Profile) -> None:
    for runs in RECIPES[recipe].sets_of(profile):
        assert len(runs.seeds[profile]) >= 3
        for method in runs.methods:
            for value in values_of(runs, method):
                config = build(runs, method, value, runs.seeds[profile][0], profile)
                assert config.data.name is not None
                if runs.data is not None:
                    assert config.data.name == runs.data


def test_half_of_the_recipes_are_there() -> None:
    assert (len(RECIPES), len(LATER)) == (16, 16)
    for recipe in RECIPES.values():
        names = [method.name for runs in recipe.sets for method in runs.methods]
        assert len(names) == len(set(names))
        assert recipe.same
        assert recipe.differs
        assert recipe.panels
