"""The simulator as people meet it: a simulation, how good its model is, and what to do where training diverges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, final

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import ConfigError, DivergenceError, TrainingError
from crosshatch.simulator.client_metrics import spread_over_clients
from crosshatch.simulator.find_best import find_best
from crosshatch.simulator.simulation import Simulation
from crosshatch.task.directions import HIGHER_IS_BETTER
from crosshatch.task.metrics import default_metrics, evaluate
from crosshatch.task.own_metric import OwnMetric, find_metrics
from crosshatch.theory.optimum import Optimum


@final
class Simulator(Simulation):
    """Runs an algorithm on a federation, in one process.

    >>> from crosshatch.algorithms.tdcd import TDCD
    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> from crosshatch.task.fusion import Sum
    >>> from crosshatch.task.losses import Logistic
    >>> from crosshatch.task.task import Task
    >>> data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2, clients=3), seed=1)
    >>> blocks = tuple(torch.nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
    >>> simulator = Simulator(data, Task(blocks, Sum(), Logistic()), TDCD(local_steps=5, batch_size=64))
    >>> for _ in range(20):
    ...     simulator.run_round()
    >>> simulator.evaluate(["auc"])["auc"] > 0.95
    True
    """

    def objective(self, samples: int | None = None) -> float:
        """Mean loss on the (first `samples`) training samples plus the regulariser; on a graph, the sum instead."""
        model = self.weights
        embeddings = self.embed_training(model, samples)
        penalty = sum(float(self.task.penalty(j, weights)) for j, weights in enumerate(model))
        value = self._loss(self._combine(model, embeddings), samples) + self.task.alignment(embeddings) + penalty
        if not np.isfinite(value):
            raise self.diverged("the training loss is")
        return value

    def zero_objective(self, samples: int | None = None) -> float:
        """The same of scores that are all zero, as weights of zero usually give: nothing learned, and no penalty."""
        y = self.data.y_train[:samples]
        like = self.weights[0]
        return self._loss(like.new_zeros(len(y), self.task.loss.scores(self.data.classes)), samples)

    def _loss(self, scores: Tensor, samples: int | None) -> float:
        mean = float(self.task.loss.value(scores, self.data.y_train[:samples]).mean(dtype=torch.float64))
        return len(self.data.y_train) * mean if self.state.summed else mean

    @cached_property
    def best(self) -> Optimum:
        """The best value of the objective, where every block is linear."""
        return find_best(self.data, self.task, summed=self.state.summed)

    def evaluate(
        self,
        metrics: Sequence[str | OwnMetric] | None = None,
        on: Literal["test", "validation"] = "test",
        rows: Tensor | None = None,
        objective: float | None = None,
    ) -> dict[str, float]:
        """Metrics on the test samples (or some `rows`); `suboptimality` is (f - f*) / (f(0) - f*) of the objective.

        Whoever knows the present `objective` of all training samples spares its computing.
        """
        asked = find_metrics(default_metrics(self.data.target) if metrics is None else metrics)
        if on == "validation" and self.data.y_validation is None:
            raise ConfigError("there are no validation samples: set data.validation, for example to 0.2")
        found, some = dict[str, float](), slice(None) if rows is None else rows
        if by_scores := [metric for metric in asked if metric != "suboptimality"]:
            scores = self.scores([silo.rows(on)[some] for silo in self.data.silos])
            if not torch.isfinite(scores).all():
                raise self.diverged(f"a {on} score is")
            found = evaluate(by_scores, scores, self.data.labels(on)[some], self.task.loss)
        if "suboptimality" in asked:
            found["suboptimality"] = self.best.suboptimality(self.objective() if objective is None else objective)
        return {name: found[name] for name in (one if isinstance(one, str) else one.name for one in asked)}

    def evaluate_clients(
        self,
        metrics: Sequence[str | OwnMetric] | None = None,
        weights: tuple[Tensor, ...] | None = None,
        higher_is_better: Mapping[str, bool] = HIGHER_IS_BETTER,
    ) -> dict[str, Any]:
        """How metrics on every client's test samples spread in each silo, of the model as it is or other `weights`."""
        asked = find_metrics(default_metrics(self.data.target) if metrics is None else metrics)
        scores = self.scores([silo.test for silo in self.data.silos], weights)
        return spread_over_clients(self.data, asked, scores, self.task.loss, higher_is_better)

    def diverged(self, what: str) -> TrainingError:
        from crosshatch.simulator.advice.culprit import find_culprit  # late, as below: few runs ask for it

        culprit = find_culprit(self.data, self.task, self.weights) if self.features_here else None
        if self.round == 0:
            default = "look at the features, and at what the blocks return"
            return TrainingError(f"before the first round {what} not finite: {culprit or default}")
        if culprit is not None:
            return TrainingError(f"round {self.round}: {what} not finite: {culprit}")
        return DivergenceError(
            f"round {self.round}: {what} no longer finite, training diverged: {self.advise(self.round)}"
        )

    def advise(self, round: int) -> str:
        """What to change where training diverged in this round (from 1 on)."""
        from crosshatch.simulator.advice.advise import advise

        return advise(self.algorithm, self.data, self.task, round=round, codecs=self.codecs)
