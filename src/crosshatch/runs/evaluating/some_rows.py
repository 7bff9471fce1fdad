"""`evaluate.test_samples`: a fixed draw of test samples while training, all of them at targets and at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from crosshatch.report.measures import Target
from crosshatch.runs.best_round import on_rows
from crosshatch.runs.config import Config
from crosshatch.runs.summary import further_costs
from crosshatch.seeds import generator
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.directions import VALIDATION
from crosshatch.task.own_metric import OwnMetric

COUNT = "test_samples"
"""In an evaluation of a run that does so: how many test samples it is of."""
Measure = Callable[[Tensor | None], Mapping[str, float]]
"""The metrics on some of the test samples, or (None) on all."""


@dataclass(frozen=True)
class SomeRows:
    """Which test samples are looked at: `drawn` ones while training, or all where it is None."""

    rounds: int
    samples: int
    drawn: Tensor | None = None

    @classmethod
    def of(cls, config: Config, y_test: Tensor) -> SomeRows:
        """As the config says; a draw of at least as many as there are is all of them."""
        wanted, samples = config.evaluate.test_samples, len(y_test)
        if wanted is None or wanted >= samples:
            return cls(config.run.rounds, samples)
        chosen = generator(config.data.split_seed, "evaluate/test samples").permutation(samples)[:wanted]
        drawn = torch.as_tensor(chosen).sort().values.to(y_test.device)
        return cls(config.run.rounds, samples, drawn)

    def measure(self, measure: Measure, done: int, ahead: Sequence[Target]) -> dict[str, Any]:
        """The metrics after a round; of all samples after the last one, and where the drawn are at a target ahead."""
        if self.drawn is None:
            return {**measure(None)}
        if done < self.rounds:
            found = measure(self.drawn)
            if not any(target.metric in found and target.is_reached_by(found[target.metric]) for target in ahead):
                return {**found, COUNT: len(self.drawn)}
        return self._on_all(measure)

    def complete(self, row: Mapping[str, Any], measure: Measure) -> Mapping[str, Any]:
        """An evaluation that turns out to be the last of a run: it is of all samples."""
        if self.drawn is None or row.get(COUNT) != len(self.drawn):
            return row
        return {**row, **self._on_all(measure)}

    def _on_all(self, measure: Measure) -> dict[str, Any]:
        return {**measure(None), COUNT: self.samples}


def metrics_row(
    simulator: Simulator, config: Config, metrics: Sequence[str | OwnMetric], some: SomeRows,
    ahead: Sequence[Target], *, wall_seconds: float, validates: bool,
) -> dict[str, Any]:  # fmt: skip
    """The next one, with these targets `ahead`; `validates`: the validation rows are measured too."""
    on_validation = simulator.evaluate(on_rows(metrics), on="validation") if validates else {}
    objective = simulator.objective(config.evaluate.train_samples)
    whole = objective if config.evaluate.train_samples is None else None
    return {
        "iteration": simulator.iteration,
        "round": simulator.round,
        "bytes": simulator.meter.bytes,
        "messages": simulator.meter.messages,
        **further_costs(simulator),
        "sim_seconds": simulator.seconds,
        "wall_seconds": round(wall_seconds, 3),
        "train_loss": objective,
        **some.measure(lambda drawn: simulator.evaluate(metrics, rows=drawn, objective=whole), simulator.round, ahead),
        **{f"{VALIDATION}{name}": value for name, value in on_validation.items()},
    }
