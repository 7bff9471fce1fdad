"""Every two curves of a figure stay apart: to three kinds of colour-blind eyes by colour or dash, in grey by shape."""

from __future__ import annotations

from itertools import combinations

import pytest

from crosshatch.report.palette import Style, series_styles
from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.recipe import Curves, Dots
from tests.report.seen import KINDS, distance

APART = 10.0  # in CIE Lab


def pairs(recipe: str) -> list[tuple[Style, Style]]:
    """Of the styles of all curves of a figure."""
    names: set[str] = set()
    for panel in RECIPES[recipe].panels:
        names |= set(panel.methods if isinstance(panel, Curves) else panel.series if isinstance(panel, Dots) else ())
    return list(combinations(series_styles(max(2, len(names))), 2))


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_pair_of_curves_stays_apart(recipe: str) -> None:
    for one, other in pairs(recipe):
        assert (one.dash, one.symbol) != (other.dash, other.symbol)  # without any colour, so in grey
        for kind in KINDS.keys() - {"grey"}:
            assert one.dash != other.dash or distance(one.color, other.color, kind) >= APART, kind


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_panel_names_methods_and_axes_that_there_are(recipe: str) -> None:
    methods = {method.name for runs in RECIPES[recipe].sets for method in runs.methods}
    for panel in RECIPES[recipe].panels:
        assert panel.title
        if isinstance(panel, Curves):
            assert set(panel.methods) <= methods
            assert all(panel.labels)
