"""Curves as SVG, PDF, PNG and CSV: text stays text, nothing in them tells the time, so equal runs give equal bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crosshatch.errors import RunError
from crosshatch.report.findings import CostAxis, axes_of, shared_metrics
from crosshatch.report.measures import metric_title
from crosshatch.report.palette import Style, run_styles
from crosshatch.report.pooled import extremes
from crosshatch.report.runs import Run
from crosshatch.runs.files import write_csv, write_whole, writing

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
            "figures need matplotlib, which is not installed: pip install -e '.[figures]' in Crosshatch's folder"
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


FORMATS = ("svg", "pdf", "png", "csv")
_INCHES = (6.4, 4.0)


def write_figures(runs: Sequence[Run], folder: Path | str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """A figure for each metric that all runs have and each cost: `auc_by_round.svg` and so on; the files written.

    >>> import tempfile
    >>> from crosshatch import read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = '{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": 0.75}'
    ...     written = Path(folder, "metrics.jsonl").write_text(line)
    ...     [path.name for path in write_figures([read_run(folder)], Path(folder, "figures"), ["csv"])]
    ['auc_by_round.csv', 'auc_by_bytes.csv', 'auc_by_sim_seconds.csv']
    """
    if not runs:
        raise RunError(
            "write_figures was given no runs: name at least one, as in write_figures([read_run(folder)], ...)"
        )
    if strange := [name for name in formats if name not in FORMATS]:
        raise RunError(f"figures are {', '.join(FORMATS)}, and not '{strange[0]}': choose among these")
    folder, written = Path(folder), []
    if folder.is_file():
        raise RunError(f"{folder} is a file, and figures are several: name a folder")
    with writing(folder, "another folder for figures"):
        folder.mkdir(parents=True, exist_ok=True)
        for metric in shared_metrics(runs):
            for axis in axes_of(runs):
                for kind in formats:
                    path = folder / f"{metric}_by_{axis.key}.{kind}"
                    if kind == "csv":
                        write_csv(path, _rows(runs, metric, axis))
                    else:
                        write_whole(path, _drawn(runs, metric, axis, kind))
                    written.append(path)
    return written


def _drawn(runs: Sequence[Run], metric: str, axis: CostAxis, kind: str) -> bytes:
    with canvas(_INCHES) as figure:
        axes = figure.add_subplot()
        for run, style in zip(runs, run_styles(runs), strict=True):
            xs, ys = [row[axis.key] for row in run.metrics], [row.get(metric, math.nan) for row in run.metrics]
            pairs = extremes(run, metric) if run.seeds else []
            band = ([low for low, _ in pairs], [high for _, high in pairs]) if pairs else None
            draw_curve(axes, xs, ys, style, run.label, band=band)
        axes.set_xlabel(axis.label)
        axes.set_ylabel(metric_title(metric))
        if len(runs) > 1:
            axes.legend()
        return as_file(figure, kind)


def _rows(runs: Sequence[Run], metric: str, axis: CostAxis) -> Iterator[list[object]]:
    """One line per run and evaluation; of several seeds the mean, the lowest and the highest."""
    yield ["run", axis.key, metric, "lowest", "highest"]
    for run in runs:
        pairs = extremes(run, metric) if run.seeds else [("", "")] * len(run.metrics)
        for row, pair in zip(run.metrics, pairs, strict=True):
            yield [run.name, row[axis.key], row.get(metric, ""), *pair]
