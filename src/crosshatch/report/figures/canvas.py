"""What every figure file shares: how it looks, how a curve is drawn, and that equal figures are equal bytes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from crosshatch.errors import RunError
from crosshatch.report.palette import Style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOTS = 200
_LOOKS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "crosshatch",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}
# what would tell the time or the machine
_SAY_NOTHING: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
_MARKERS = {"": "", "circle": "o", "square": "s", "diamond": "D", "triangle": "^", "saltire": "X", "cross": "P"}
_MARKS = 8  # symbols on a curve


@contextmanager
def canvas(inches: tuple[float, float]) -> Iterator[Figure]:
    """A figure to draw into, away from any window and from the settings of whoever calls."""
    try:
        import matplotlib as mpl  # late: few need it, and it takes a second
        from matplotlib.figure import Figure
    except ImportError:
        raise RunError(
            "figures need matplotlib, which is not installed: pip install '.[figures]' in Crosshatch's folder"
        ) from None
    plain: dict[str, Any] = {key: value for key, value in mpl.rcParamsDefault.items() if not key.startswith("backend")}
    with mpl.rc_context(cast(Any, plain | _LOOKS)):
        yield Figure(figsize=inches, layout="constrained")


def as_file(figure: Figure, kind: str) -> bytes:
    """The figure as `svg`, `pdf` or `png`; within `canvas`."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=_DOTS, metadata=_SAY_NOTHING[kind])
    return content.getvalue()


def draw_curve(
    axes: Any,
    xs: Sequence[float],
    ys: Sequence[float],
    style: Style,
    label: str,
    *,
    band: tuple[Sequence[float], Sequence[float]] | None = None,
    symbols: int | None = None,
) -> None:
    """A curve with the lowest and highest around it, if any; `symbols`: with its symbol, the first at this point."""
    dashes = tuple(float(part) for part in style.dash.split())
    if band is not None:
        axes.fill_between(xs, *band, color=style.color, alpha=0.18, linewidth=0)
    marks: dict[str, Any] = {}
    if symbols is not None:
        every = max(1, len(xs) // _MARKS)
        marks = {"marker": _MARKERS[style.symbol], "markersize": 5, "markevery": (symbols % every, every)}
    axes.plot(xs, ys, color=style.color, linewidth=max(1.2, style.width / 3), label=label,
              linestyle=(0, dashes) if dashes else "-", **marks)  # fmt: skip


def draw_points(axes: Any, xs: Sequence[float], ys: Sequence[float], style: Style, label: str) -> None:
    """Points that no line joins, with the style's symbol."""
    axes.plot(xs, ys, linestyle="", marker=_MARKERS[style.symbol], markersize=5, color=style.color, alpha=0.8,
              label=label)  # fmt: skip
