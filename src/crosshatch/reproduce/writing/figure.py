"""A recipe's figure as SVG and PNG, in the layout of the paper: one panel beside the other, one legend below."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Any

from crosshatch.report.figures.write_figures import as_file, canvas, draw_curve, draw_points
from crosshatch.report.palette import Style, series_styles
from crosshatch.reproduce.judging.rows import Row
from crosshatch.reproduce.measured import Measured, Series
from crosshatch.reproduce.recipe import Beside, Curves, Dots, Panel

WIDTH, HEIGHT, COLUMNS = 4.6, 3.5, 3  # inches of a panel, panels side by side
_PAPER = "#333333"


def draw(panels: Sequence[Panel], measured: Measured, rows: Sequence[Row]) -> dict[str, bytes]:
    """A figure as SVG and PNG, by the names of their files; a RunError where matplotlib is not installed."""
    styles = _styles(panels)
    wide = min(len(panels), COLUMNS)
    tall = -(-len(panels) // wide)
    with canvas((WIDTH * max(wide, 1.3), HEIGHT * tall + 0.9)) as figure:
        axes = figure.subplots(tall, wide, squeeze=False)
        for k, panel in enumerate(panels):
            one = axes[k // wide][k % wide]
            one.set_title(panel.title, fontsize=10)
            if isinstance(panel, Curves):
                _curves(one, panel, measured, styles)
            elif isinstance(panel, Dots):
                _dots(one, panel, rows, styles)
            else:
                _beside(one, panel, rows, styles)
        for k in range(len(panels), wide * tall):
            axes[k // wide][k % wide].set_axis_off()
        handles: dict[str, Any] = {}
        for one in figure.axes:
            handles |= dict(zip(*one.get_legend_handles_labels()[::-1], strict=True))
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(4, len(handles)))
        return {f"figure.{kind}": as_file(figure, kind) for kind in ("svg", "png")}


def _styles(panels: Sequence[Panel]) -> Mapping[str, Style]:
    """One style per name, the same in all panels."""
    names: dict[str, None] = {}
    for panel in panels:
        if isinstance(panel, Curves):
            names |= dict.fromkeys(panel.methods)
        elif isinstance(panel, Dots):
            names |= dict.fromkeys(panel.series)
        else:
            names |= dict.fromkeys(f"ours, {reading}" for reading in panel.readings)
    return dict(zip(names, series_styles(len(names)), strict=True))


def _scale(axes: Any, logarithmic: tuple[bool, bool]) -> None:
    """Logarithmic axes with few labels, written as plain numbers; not where there is nothing to draw."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for wanted, axis, name in zip(logarithmic, (axes.xaxis, axes.yaxis), "xy", strict=True):
        if wanted and isfinite(axis.get_minpos()):
            axes.set(**{f"{name}scale": "log"})
            low, high = axis.get_view_interval()
            between = (2.0, 5.0) if high > 10 * low else (2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
            wide = high > 300 * low  # labels between the powers of ten would touch
            axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, *between), numticks=12))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())


def _curves(axes: Any, panel: Curves, measured: Measured, styles: Mapping[str, Style]) -> None:
    for k, name in enumerate(panel.methods):
        x, mean, *band = _pooled(measured.of(name, panel.reading), panel)
        if x:
            draw_curve(axes, x, mean, styles[name], name, band=(band[0], band[1]), symbols=k)
    _scale(axes, panel.logarithmic)
    axes.set_xlabel(panel.labels[0])
    axes.set_ylabel(panel.labels[1])


def _pooled(series: Series, panel: Curves) -> tuple[list[float], list[float], list[float], list[float]]:
    """Mean, least and largest over the seeds at the evaluations that all of them have."""
    shared = zip(*(run.metrics for run in series.runs), strict=False)
    points = [
        (fmean(row[panel.x] for row in many), [row[panel.metric] for row in many])
        for many in shared
        if all(panel.metric in row for row in many)
    ]
    kept = [(x, ys) for x, ys in points if panel.last is None or x <= panel.last]
    kept = [(x, ys) for x, ys in kept if not panel.logarithmic[0] or x > 0]
    return [x for x, _ in kept], [fmean(ys) for _, ys in kept], [min(ys) for _, ys in kept], [max(ys) for _, ys in kept]


def _dots(axes: Any, panel: Dots, rows: Sequence[Row], styles: Mapping[str, Style]) -> None:
    for name, points in panel.series.items():
        found = [(x, _find(rows, setting, panel.what or name, panel.reading)) for x, setting in points]
        reached = [(x, row) for x, row in found if row is not None and isfinite(row.mean)]
        draw_curve(axes, [x for x, _ in reached], [row.mean for _, row in reached], styles[name], name, symbols=0)
        for x, row in reached:
            axes.plot([x] * len(row.ours), row.ours, ".", color=styles[name].color, alpha=0.5, markersize=4)
    _scale(axes, panel.logarithmic)
    ticks = sorted({x for points in panel.series.values() for x, _ in points})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(panel.labels[0])
    axes.set_ylabel(panel.labels[1])


def _beside(axes: Any, panel: Beside, rows: Sequence[Row], styles: Mapping[str, Style]) -> None:
    settings = list(
        dict.fromkeys(row.setting for row in rows if row.what == panel.what and row.reading in panel.readings)
    )
    for r, reading in enumerate(panel.readings):
        style, name = styles[f"ours, {reading}"], f"ours, {reading}"
        for k, setting in enumerate(settings):
            row = _find(rows, setting, panel.what, reading)
            reached = [one for one in (row.ours if row is not None else ()) if isfinite(one)]
            draw_points(axes, reached, [k + 0.18 * (r + 1)] * len(reached), style, "" if k else name)
    found = [_find(rows, setting, panel.what, panel.readings[0]) for setting in settings]
    papers = [(row.paper, k) for k, row in enumerate(found) if row is not None and row.paper is not None]
    if papers:
        marks: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 12, "markeredgewidth": 2.5}
        axes.plot(*zip(*papers, strict=True), color=_PAPER, label="the paper", **marks)
    axes.set_yticks(range(len(settings)), settings)
    axes.invert_yaxis()
    _scale(axes, (panel.logarithmic, False))
    axes.set_xlabel(panel.label)


def _find(rows: Sequence[Row], setting: str, what: str, reading: str) -> Row | None:
    return next((row for row in rows if (row.setting, row.what, row.reading) == (setting, what, reading)), None)
