"""`evaluate.test_samples`: a fixed draw of test samples while training, all of them at targets and at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from crosshatch.report.measures import Rows, Target, first_reaching
from crosshatch.runs.config import Config
from crosshatch.runs.directory import RunDirectory
from crosshatch.seeds import generator
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.own_metric import OwnMetric

COUNT = "test_samples"
"""In an evaluation of a run that does so: how many test samples it is of."""


@dataclass(frozen=True)
class SomeRows:
    """Which test samples are looked at: `drawn` ones while training, or all where it is None."""

    simulator: Simulator
    rounds: int
    targets: tuple[Target, ...] = ()
    smooth: int = 1
    drawn: Tensor | None = None

    @classmethod
    def of(cls, config: Config, simulator: Simulator) -> SomeRows:
        """As the config says; a draw of at least as many as there are is all of them."""
        wanted, y = config.evaluate.test_samples, simulator.data.y_test
        if wanted is None or wanted >= len(y):
            return cls(simulator, config.run.rounds)
        chosen = generator(config.data.split_seed, "evaluate/test samples").permutation(len(y))[:wanted]
        drawn = torch.as_tensor(chosen).sort().values.to(y.device)
        return cls(simulator, config.run.rounds, config.evaluate.parsed_targets, config.evaluate.smooth, drawn)

    def measure(self, metrics: Sequence[str | OwnMetric], before: Rows) -> dict[str, Any]:
        """The metrics after this round; of all samples after the last one, and where the drawn are at a target."""
        if self.drawn is None:
            return {**self.simulator.evaluate(metrics)}
        if self.simulator.round < self.rounds:
            found = self.simulator.evaluate(metrics, rows=self.drawn)
            still = [target for target in self.targets if first_reaching(before, target, self.smooth) is None]
            if not any(target.metric in found and target.is_reached_by(found[target.metric]) for target in still):
                return {**found, COUNT: len(self.drawn)}
        return self._on_all(metrics)

    def complete(
        self, metrics: Sequence[str | OwnMetric], rows: list[Mapping[str, Any]], directory: RunDirectory
    ) -> None:
        """Have the last evaluation of a run be of all samples, here and in its directory."""
        if self.drawn is not None and rows[-1].get(COUNT) == len(self.drawn):
            rows[-1] = {**rows[-1], **self._on_all(metrics)}
            directory.replace_last(rows[-1])

    def _on_all(self, metrics: Sequence[str | OwnMetric]) -> dict[str, Any]:
        return {**self.simulator.evaluate(metrics), COUNT: len(self.simulator.data.y_test)}
