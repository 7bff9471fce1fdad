"""The data behind the curves, for the page's script: plain lists, one entry per evaluation, None where not finite."""

import math
from collections.abc import Sequence
from typing import Any

from crosshatch.report.compare import find_arrival
from crosshatch.report.findings import CostAxis, axes_of, curve_title, shared_metrics
from crosshatch.report.measures import Target, metric_title
from crosshatch.report.palette import run_styles
from crosshatch.report.pooled import extremes
from crosshatch.report.rows_apart import rows_apart
from crosshatch.report.runs import Run
from crosshatch.task.directions import HIGHER_IS_BETTER

#: More points than a wide screen has pixels only make the page heavy.
MOST_POINTS = 1000
#: Of all curves of a page, about eight bytes each.
MOST_NUMBERS = 60_000


def metric_order(runs: Sequence[Run]) -> tuple[str, ...]:
    """Every metric of any run: those that all runs share first, the most telling one at the head."""
    return tuple(dict.fromkeys([*shared_metrics(runs), *(name for run in runs for name in run.metric_names)]))


def curve_data(runs: Sequence[Run], targets: Sequence[Target]) -> dict[str, Any]:
    """What the page's script draws, ready for JSON."""
    metrics, axes = metric_order(runs), axes_of(runs)
    columns = sum(len(axes) + len(run.metric_names) * (3 if run.seeds else 1) for run in runs)
    most = min(MOST_POINTS, max(MOST_NUMBERS // columns, 2))
    marks = rows_apart(runs).marks
    return {
        "runs": [
            _curve(run, axes, most)
            | {"rows": mark}
            | {"color": style.color, "dash": style.dash, "symbol": style.symbol, "width": style.width}
            for run, style, mark in zip(runs, run_styles(runs), marks, strict=True)
        ],
        "axes": {axis.key: axis.label for axis in axes},
        "labels": {metric: metric_title(metric) for metric in metrics},
        "higher": {metric: HIGHER_IS_BETTER.get(metric) for metric in metrics},
        "titles": {m: {axis.key: curve_title(runs, m, axis, targets) for axis in axes} for m in metrics},
        "targets": [
            {"metric": target.metric, "value": target.value, "higher": target.higher,
             "label": f"target {target.value:.4g}",
             "arrivals": [
                 None if there is None
                 else {axis.key: float(getattr(there, axis.key)) for axis in axes} | {"value": there.value}
                 for there in (find_arrival(run, target) for run in runs)
             ]}
            for target in targets
        ],
    }  # fmt: skip


def thin(count: int, most: int) -> list[int]:
    """Which of `count` evaluations to draw: `most` of them at most, first and last included.

    Half of them are evenly spaced, for a linear axis; the others are denser the earlier, for a logarithmic one.

    >>> thin(5, 10), thin(1001, 9)
    ([0, 1, 2, 3, 4], [0, 1, 6, 32, 178, 250, 500, 750, 1000])
    """
    if count <= most:
        return list(range(count))
    last, even = count - 1, (most + 1) // 2
    spaced = {round(last * i / max(even - 1, 1)) for i in range(even)}
    early = {round(last ** (i / (most - even))) for i in range(most - even)}
    return sorted(spaced | early)


def _curve(run: Run, axes: Sequence[CostAxis], most: int) -> dict[str, Any]:
    kept = thin(len(run.metrics), most)
    rows = [run.metrics[i] for i in kept]
    curve = {
        "name": run.label,
        "diverged": _diverged(run, axes),
        "x": {axis.key: [_short(row[axis.key]) for row in rows] for axis in axes},
        "y": {metric: [_short(row.get(metric, math.nan)) for row in rows] for metric in run.metric_names},
    }
    if run.seeds:
        bands = {metric: extremes(run, metric) for metric in run.metric_names}
        curve["low"] = {metric: [_short(pairs[i][0]) for i in kept] for metric, pairs in bands.items()}
        curve["high"] = {metric: [_short(pairs[i][1]) for i in kept] for metric, pairs in bands.items()}
    return curve


def _diverged(run: Run, axes: Sequence[CostAxis]) -> dict[str, Any] | None:
    """Where to write the word: at the evaluation that noticed it, or the last before its numbers were no longer any."""
    if run.facts.diverged is None:
        return None
    at = run.facts.diverged.round
    row = next((row for row in run.metrics if row["round"] >= at), run.metrics[-1])
    return {
        "x": {axis.key: row[axis.key] for axis in axes},
        "y": {metric: _finite(row.get(metric, math.nan)) for metric in run.metric_names},
    }


def _short(value: float) -> float | None:
    """Whole numbers as they are, others with six digits: two more than the page shows."""
    return value if isinstance(value, int) else _finite(float(f"{value:.6g}"))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
