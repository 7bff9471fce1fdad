"""Colours, dashes and symbols that stay apart for colour-blind readers, on white, on black and in grey print."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosshatch.report.runs import Run

# Okabe and Ito's palette without black (invisible in the dark) and yellow (invisible on white), the darker ones first.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
NEUTRAL = "#B4B4B4"  # pale, yet to be seen on white and on black

_DASHES = ("", "7 3", "2 3", "7 3 2 3")
_BAND_DASHES = ("", "14 4", "4 4")
_SYMBOLS = ("circle", "square", "diamond", "triangle", "saltire", "cross")


_BAND, _WIDEST, _THINNEST, _ALONE = 10.0, 7.0, 2.0, 2.5  # pixels
_INK = 60.0  # pixels that all curves together may be wider than the thinnest: many are thin


@dataclass(frozen=True)
class Style:
    """How a run is drawn: `dash` as SVG writes it, `symbol` as plot.js calls it (or none), `width` in pixels."""

    color: str
    dash: str
    symbol: str
    width: float


def run_styles(runs: Sequence[Run]) -> tuple[Style, ...]:
    """One style per run. Central training is the yardstick and not a rival: a broad pale band below the others; a
    second one (as of one silo alone) is dashed.

    Curves of equal runs lie on each other, so each is thinner than those drawn before it and leaves their edges free.
    """
    rivals = sum(not is_yardstick(run) for run in runs)
    widest = min(_WIDEST, _THINNEST + _INK / max(rivals, 1))
    styles: list[Style] = []
    position = yardsticks = 0
    for run in runs:
        if is_yardstick(run):
            styles.append(Style(NEUTRAL, _BAND_DASHES[yardsticks % len(_BAND_DASHES)], "", _BAND))
            yardsticks += 1
            continue
        turn, place = divmod(position, len(OKABE_ITO))
        width = widest - (widest - _THINNEST) * (position + 1) / rivals if rivals > 1 else _ALONE
        styles.append(Style(OKABE_ITO[place], _DASHES[turn % len(_DASHES)], _SYMBOLS[place], round(width, 1)))
        position += 1
    return tuple(styles)


def is_yardstick(run: Run) -> bool:
    return run.algorithm == "central"


def series_styles(count: int) -> tuple[Style, ...]:
    """Styles for curves that are no runs: a colour and a symbol each, dashed from the second turn of colours on.

    Symbols take other turns than colours, so that no two curves share both.

    >>> len({(style.color, style.dash, style.symbol) for style in series_styles(12)})
    12
    """
    styles = []
    for position in range(count):
        turn, place = divmod(position, len(OKABE_ITO))
        symbol = _SYMBOLS[(place + turn) % len(_SYMBOLS)]
        styles.append(Style(OKABE_ITO[place], _DASHES[turn % len(_DASHES)], symbol, _THINNEST))
    return tuple(styles)
