"""Colours, dashes and symbols that stay apart for colour-blind readers, on white, on black and in grey print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crosshatch.report.runs import Run

# Okabe and Ito's palette without black (invisible in the dark) and yellow (invisible on white), the darker ones first.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NEUTRAL = "#808080"

_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross")


@dataclass(frozen=True)
class Style:
    """How a run is drawn; `dash` and `symbol` are plotly's names."""

    color: str
    dash: str
    symbol: str


def run_styles(runs: Sequence[Run]) -> tuple[Style, ...]:
    """One style a run. Central training is the yardstick and not a rival: grey and dotted."""
    styles = []
    position = 0
    for run in runs:
        if is_yardstick(run):
            styles.append(Style(NEUTRAL, "dot", "circle-open"))
            continue
        turn, place = divmod(position, len(OKABE_ITO))
        styles.append(Style(OKABE_ITO[place], _DASHES[turn % len(_DASHES)], _SYMBOLS[place]))
        position += 1
    return tuple(styles)


def is_yardstick(run: Run) -> bool:
    return run.algorithm == "central"
