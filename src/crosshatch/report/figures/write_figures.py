"""Curves as SVG, PDF, PNG and CSV: text stays text, nothing in them tells the time, so equal runs give equal bytes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from crosshatch.errors import RunError
from crosshatch.report.figures.canvas import as_file, canvas, draw_curve
from crosshatch.report.findings import CostAxis, axes_of, shared_metrics
from crosshatch.report.measures import metric_title
from crosshatch.report.palette import run_styles
from crosshatch.report.pooled import extremes
from crosshatch.report.runs import Run
from crosshatch.runs.files import write_whole, writing

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
                    write_whole(path, _csv(runs, metric, axis) if kind == "csv" else _drawn(runs, metric, axis, kind))
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


def _csv(runs: Sequence[Run], metric: str, axis: CostAxis) -> bytes:
    """One line per run and evaluation; of several seeds the mean, the lowest and the highest."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", axis.key, metric, "lowest", "highest"])
    for run in runs:
        pairs = extremes(run, metric) if run.seeds else [("", "")] * len(run.metrics)
        for row, pair in zip(run.metrics, pairs, strict=True):
            writer.writerow([run.name, row[axis.key], row.get(metric, ""), *pair])
    return text.getvalue().encode()
