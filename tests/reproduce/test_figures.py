"""Every two curves of a figure stay apart: to three kinds of colour-blind eyes by colour or dash, in grey by shape."""

from __future__ import annotations

from itertools import combinations
from math import inf
from typing import Any

import pytest

from crosshatch.report.palette import Style, series_styles
from crosshatch.reproduce.all_recipes import RECIPES
from crosshatch.reproduce.judging.rows import Row
from crosshatch.reproduce.recipe import Beside, Curves, Dots
from crosshatch.reproduce.writing.figure import draw
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


def test_targets_that_nobody_reached_are_drawn_as_empty_panels() -> None:
    panels = (
        Dots("rounds by step size", "rounds", {"A": ((0.1, "A"), (1, "B"))}, ("step size", "rounds"), (True, True)),
        Beside("rounds", "rounds", "rounds", ("own",)),
    )
    unused: Any = None  # what curves are drawn from
    figures = draw(panels, unused, [Row(name, "rounds", (inf, inf, inf)) for name in "AB"])
    assert b"rounds by step size" in figures["figure.svg"]
