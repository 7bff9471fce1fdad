"""The best round so far by a metric on the validation rows, with its model, and when a run ends before its last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from crosshatch.report.measures import Target, main_metric
from crosshatch.runs.config import Config
from crosshatch.runs.run_settings import RunSettings
from crosshatch.task.directions import VALIDATION, directions
from crosshatch.task.own_metric import OwnMetric

_WEIGHTS = "best_round."
Named = TypeVar("Named", str, str | OwnMetric)


@dataclass
class BestRound:
    """By `metric`, of which `higher` values are better or lower ones.

    `row` is its evaluation and `weights` its model, once there is one.
    """

    metric: str
    higher: bool = True
    row: Mapping[str, Any] | None = None
    weights: tuple[Tensor, ...] = ()
    since: int = 0  # evaluations after it

    @classmethod
    def of(cls, config: Config, rows: Sequence[Mapping[str, Any]] = ()) -> BestRound | None:
        """As the config says, after some evaluations; None without validation rows."""
        if not config.has_validation_rows:
            return None
        metric = VALIDATION + (config.evaluate.best_by or main_metric(on_rows(config.evaluate.names)))
        found = cls(metric, directions(config.evaluate.higher_is_better)[metric])
        for row in rows:
            found.see(row)
        return found

    def see(self, row: Mapping[str, Any], weights: tuple[Tensor, ...] | None = None) -> None:
        """An evaluation, in order; of equal ones the first is best. Without `weights` only the count is kept."""
        sign = 1 if self.higher else -1
        if self.row is not None and not sign * row[self.metric] > sign * self.row[self.metric]:
            self.since += 1
            return
        self.row, self.since = row, 0
        if weights is not None:
            self.weights = tuple(one.clone(memory_format=torch.contiguous_format) for one in weights)

    def describe(self) -> dict[str, Any]:
        """For the summary: the round, by what it was chosen, and all that was measured after it."""
        assert self.row is not None
        return {"by": self.metric, **self.row}

    def tensors(self) -> dict[str, Tensor]:
        return {f"{_WEIGHTS}{j}": one for j, one in enumerate(self.weights)}

    def restore(self, tensors: dict[str, Tensor], rows: list[Mapping[str, Any]]) -> None:
        """Go on from a checkpoint, taking its own out of the tensors, and from the evaluations up to it."""
        kept = [name for name in tensors if name.startswith(_WEIGHTS)]
        self.weights = tuple(tensors.pop(f"{_WEIGHTS}{j}") for j in range(len(kept)))
        for row in rows:
            self.see(row)


def on_rows(metrics: Sequence[Named]) -> tuple[Named, ...]:
    """Those of the metrics that can be measured on validation rows: all but one about the training objective."""
    return tuple(name for name in metrics if name != "suboptimality")


def ends_run(run: RunSettings, best: BestRound | None, ahead: Sequence[Target], *, grown: bool) -> bool:
    """Whether a run ends at an evaluation: the loss has grown, patience is lost, or no target is left `ahead`."""
    lost = best is not None and run.patience is not None and best.since >= run.patience
    return (grown and run.on_divergence == "stop") or lost or (run.stop_at_targets and not ahead)
