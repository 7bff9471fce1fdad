"""The data behind the curves, for the page's script: plain lists, one entry per evaluation, None where not finite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from crosshatch.report.compare import find_arrival
from crosshatch.report.findings import Axis, axes_of, curve_title, shared_metrics
from crosshatch.report.measures import Target, metric_title
from crosshatch.report.palette import run_styles
from crosshatch.report.runs import Run
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds

#: More points than a wide screen has pixels only make the page heavy.
MOST_POINTS = 2000


def metric_order(runs: Sequence[Run]) -> tuple[str, ...]:
    """Every metric of any run: those that all runs share first, the most telling one at the head."""
    return tuple(dict.fromkeys([*shared_metrics(runs), *(name for run in runs for name in run.metric_names)]))


def curve_data(runs: Sequence[Run], targets: Sequence[Target]) -> dict[str, Any]:
    """What the page's script draws, ready for JSON."""
    metrics, axes = metric_order(runs), axes_of(runs)
    return {
        "runs": [
            _curve(run, axes) | {"color": style.color, "dash": style.dash, "symbol": style.symbol, "width": style.width}
            for run, style in zip(runs, run_styles(runs), strict=True)
        ],
        "axes": {axis.key: axis.label for axis in axes},
        "labels": {metric: metric_title(metric) for metric in metrics},
        "titles": {m: {axis.key: curve_title(runs, m, axis, targets) for axis in axes} for m in metrics},
        "targets": [
            {"metric": target.metric, "value": target.value, "higher": target.higher,
             "label": f"target {target.value:.4g}", "arrivals": [_arrival(run, target, axes) for run in runs]}
            for target in targets
        ],
    }  # fmt: skip


def thin(rows: Sequence[dict[str, float]], most: int = MOST_POINTS) -> list[dict[str, float]]:
    """At most `most` rows, evenly spaced, first and last included."""
    if len(rows) <= most:
        return list(rows)
    return [rows[i * (len(rows) - 1) // (most - 1)] for i in range(most)]


def _curve(run: Run, axes: Sequence[Axis]) -> dict[str, Any]:
    rows = thin(run.metrics)
    return {
        "name": run.label,
        "diverged": _diverged(run, axes),
        "x": {axis.key: [row[axis.key] for row in rows] for axis in axes},
        "y": {metric: [_finite(row.get(metric, math.nan)) for row in rows] for metric in run.metric_names},
        "hover": [
            f"round {human_count(row['round'])}, {human_bytes(row['bytes'])}, {human_seconds(row['sim_seconds'])}"
            for row in rows
        ],
        "values": {metric: [human_number(row.get(metric, math.nan)) for row in rows] for metric in run.metric_names},
    }


def _diverged(run: Run, axes: Sequence[Axis]) -> dict[str, Any] | None:
    """Where to write the word: at the evaluation that noticed it, or the last before its numbers were no longer any."""
    if run.facts.diverged is None:
        return None
    at = run.facts.diverged.round
    row = next((row for row in run.metrics if row["round"] >= at), run.metrics[-1])
    return {
        "x": {axis.key: row[axis.key] for axis in axes},
        "y": {metric: _finite(row.get(metric, math.nan)) for metric in run.metric_names},
    }


def _arrival(run: Run, target: Target, axes: Sequence[Axis]) -> dict[str, float] | None:
    arrival = find_arrival(run, target)
    if arrival is None:
        return None
    costs = {axis.key: float(getattr(arrival, axis.key)) for axis in axes}
    return {**costs, "value": arrival.value}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
