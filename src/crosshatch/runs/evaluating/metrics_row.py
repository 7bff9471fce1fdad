"""One line of `metrics.jsonl`: where a run is, what it cost so far and how good it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from crosshatch.runs.best_round import on_rows
from crosshatch.runs.config import Config
from crosshatch.runs.evaluating.some_rows import SomeRows
from crosshatch.runs.summary import further_costs
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.directions import VALIDATION
from crosshatch.task.own_metric import OwnMetric


def metrics_row(
    simulator: Simulator, config: Config, metrics: Sequence[str | OwnMetric], some: SomeRows,
    rows: Sequence[Mapping[str, Any]], *, wall_seconds: float, validates: bool,
) -> dict[str, Any]:  # fmt: skip
    """The next one after `rows`; `validates`: the validation rows are measured too."""
    on_validation = simulator.evaluate(on_rows(metrics), on="validation") if validates else {}
    return {
        "iteration": simulator.iteration,
        "round": simulator.round,
        "bytes": simulator.meter.bytes,
        "messages": simulator.meter.messages,
        **further_costs(simulator),
        "sim_seconds": simulator.seconds,
        "wall_seconds": round(wall_seconds, 3),
        "train_loss": simulator.objective(config.evaluate.train_samples),
        **some.measure(lambda drawn: simulator.evaluate(metrics, rows=drawn), simulator.round, rows),
        **{f"{VALIDATION}{name}": value for name, value in on_validation.items()},
    }
