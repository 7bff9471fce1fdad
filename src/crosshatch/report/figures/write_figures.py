"""Curves as SVG, PDF, PNG and CSV: text stays text, nothing in them tells the time, so equal runs give equal bytes."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crosshatch.errors import RunError
from crosshatch.report.findings import Axis, axes_of, shared_metrics
from crosshatch.report.measures import metric_title
from crosshatch.report.palette import Style, run_styles
from crosshatch.report.pooled import extremes
from crosshatch.report.runs import Run
from crosshatch.runs.files import write_whole, writing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png", "csv")
_INCHES, _DOTS = (6.4, 4.0), 200
_LOOKS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "crosshatch",
    "pdf.fonttype": 42,
    "font.family": "DejaVu Sans",
}
# what would tell the time or the machine
_SAY_NOTHING: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}


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


def _drawn(runs: Sequence[Run], metric: str, axis: Axis, kind: str) -> bytes:
    with _matplotlib() as figure:
        axes = figure.add_subplot()
        for run, style in zip(runs, run_styles(runs), strict=True):
            _draw(axes, run, style, metric, axis)
        axes.set_xlabel(axis.label)
        axes.set_ylabel(metric_title(metric))
        axes.grid(visible=True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if len(runs) > 1:
            axes.legend(frameon=False)
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=_DOTS, metadata=_SAY_NOTHING[kind])
        return content.getvalue()


def _draw(axes: Any, run: Run, style: Style, metric: str, axis: Axis) -> None:
    xs = [row[axis.key] for row in run.metrics]
    ys = [row.get(metric, math.nan) for row in run.metrics]
    dashes = tuple(float(part) for part in style.dash.split())
    if run.seeds:
        pairs = extremes(run, metric)
        axes.fill_between(xs, [low for low, _ in pairs], [high for _, high in pairs], color=style.color, alpha=0.18,
                          linewidth=0)  # fmt: skip
    axes.plot(xs, ys, color=style.color, linewidth=max(1.2, style.width / 3), label=run.label,
              linestyle=(0, dashes) if dashes else "-")  # fmt: skip


def _csv(runs: Sequence[Run], metric: str, axis: Axis) -> bytes:
    """One line per run and evaluation; of several seeds the mean, the lowest and the highest."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", axis.key, metric, "lowest", "highest"])
    for run in runs:
        pairs = extremes(run, metric) if run.seeds else [("", "")] * len(run.metrics)
        for row, pair in zip(run.metrics, pairs, strict=True):
            writer.writerow([run.name, row[axis.key], row.get(metric, ""), *pair])
    return text.getvalue().encode()


@contextmanager
def _matplotlib() -> Iterator[Figure]:
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
        yield Figure(figsize=_INCHES, layout="constrained")
