"""The documentation's page of verdicts is not older than the recipes and rules it tells of."""

from __future__ import annotations

from pathlib import Path

from crosshatch.reproduce.all_recipes import LATER, RECIPES
from crosshatch.reproduce.running.folder import rules_digest
from crosshatch.reproduce.writing.docs_page import MARK

PAGE = Path(__file__).parents[2] / "docs" / "results_papers.md"


def test_no_recipe_is_newer_than_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert MARK.format(rules_digest()) in text, "recipes or rules have changed: run them, then `make results`"
    assert [name for name in (*RECIPES, *LATER) if f"`{name}`" not in text] == []
