"""Curves of a figure stay apart without their colours, so in grey and for any kind of colour-blindness too."""

from __future__ import annotations

import pytest

from crosshatch.report.palette import series_styles
from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.recipe import Curves, Dots


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_no_two_curves_have_the_same_dash_and_symbol(recipe: str) -> None:
    names: set[str] = set()
    for panel in RECIPES[recipe].panels:
        names |= set(panel.methods if isinstance(panel, Curves) else panel.series if isinstance(panel, Dots) else ())
    styles = series_styles(max(2, len(names)))
    assert len({(style.dash, style.symbol) for style in styles}) == len(styles)
    assert len({(style.dash, style.color) for style in styles}) == len(styles)


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_panel_names_methods_and_axes_that_there_are(recipe: str) -> None:
    methods = {method.name for runs in RECIPES[recipe].sets for method in runs.methods}
    for panel in RECIPES[recipe].panels:
        assert panel.title
        if isinstance(panel, Curves):
            assert set(panel.methods) <= methods
            assert all(panel.labels)
