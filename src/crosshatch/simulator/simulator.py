"""A simulation: data, task and algorithm put together, advanced round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, TrainingError
from crosshatch.exchanges import Algorithm
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Constant, Network
from crosshatch.schedules import rate
from crosshatch.simulator.batch import BatchSource, SeededBatches
from crosshatch.simulator.federation import SimulatedFederation
from crosshatch.simulator.forward import forward
from crosshatch.simulator.local.solve import Strategy
from crosshatch.simulator.memory import keep_freed_memory
from crosshatch.simulator.traffic import Traffic
from crosshatch.simulator.values import Blocks
from crosshatch.task.fusion import Sum
from crosshatch.task.metrics import default_metrics, evaluate
from crosshatch.task.task import Task


class Simulator:
    """Runs an algorithm on a federation, in one process.

    >>> from crosshatch.algorithms.tdcd import TDCD
    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.settings import FederationSettings
    >>> from crosshatch.task.losses import Logistic
    >>> data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2, clients=3), seed=1)
    >>> blocks = tuple(torch.nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
    >>> simulator = Simulator(data, Task(blocks, Sum(), Logistic()), TDCD(local_steps=5, batch_size=64))
    >>> for _ in range(20):
    ...     simulator.run_round()
    >>> simulator.evaluate(["auc"])["auc"] > 0.95
    True
    """

    def __init__(
        self,
        data: FederatedData,
        task: Task,
        algorithm: Algorithm,
        *,
        seed: int = 0,
        network: Network | None = None,
        batches: BatchSource | None = None,
        strategy: Strategy = "auto",
        threads: int | None = None,
        device: str = "cpu",
        precision: torch.dtype = torch.float32,
    ) -> None:
        """Put the parties together; weights start as the task's modules have them."""
        keep_freed_memory()
        if threads is not None:
            torch.set_num_threads(threads)
        self.data = _move(data, device, precision)
        self.task = task.to(device, precision)
        self.algorithm = algorithm
        self.widths = self.task.check_fit([silo.train[:2] for silo in self.data.silos], data.classes)
        central = bool(getattr(algorithm, "central", False))
        single = not algorithm.topology.below
        if not central:
            _check_topology(data, algorithm, single=single)
        names = [silo.name for silo in data.silos]
        clocks = Clocks(np.zeros(len(names)))
        traffic = Traffic(names, network or Constant(), precision, Meter(), clocks, free=central, single=single)
        self.federation = SimulatedFederation(
            self.data,
            self.task,
            traffic,
            batches or SeededBatches(seed),
            self.widths,
            strategy=strategy,
            threads=threads or torch.get_num_threads(),
            keep_passes=algorithm.local_steps == 1 or central,
            one_client=central,
        )
        self.blocks = Blocks(tuple(self.task.initial()))
        self.round = 0

    @property
    def meter(self) -> Meter:
        """Messages and bytes so far."""
        return self.federation.traffic.meter

    @property
    def seconds(self) -> float:
        """Simulated time so far."""
        return self.federation.traffic.clocks.now

    @property
    def iteration(self) -> int:
        """Local steps so far."""
        return self.round * self.algorithm.local_steps

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The hubs' blocks, one flat vector a silo."""
        return self.blocks.base

    def run_round(self) -> None:
        """One round; a TrainingError if the weights are no longer finite."""
        self.blocks = self.algorithm.run_round(self.federation, self.blocks, self.round)
        self.round += 1
        for silo, weights in zip(self.task.names, self.weights, strict=True):
            if not torch.isfinite(weights.sum()):
                raise TrainingError(self._diverged(f"the block of silo '{silo}' is"))

    def _diverged(self, what: str) -> str:
        return (
            f"round {self.round}: {what} no longer finite, training diverged: lower algorithm.step_size "
            f"(now {rate(self.algorithm.step_size, self.round - 1):g}) or algorithm.local_steps"
        )

    def scores(self, xs: Sequence[Tensor]) -> Tensor:
        """Scores (n, c) of samples given as one tensor a silo, under the hubs' blocks."""
        threads = self.federation.threads
        embeddings = [
            forward(self.task, j, weights, x, keep=False, threads=threads)[0]
            for j, (weights, x) in enumerate(zip(self.weights, xs, strict=True))
        ]
        if isinstance(self.task.fusion, Sum):
            return torch.stack(embeddings).sum(0)
        _, head = self.task.split(self.task.fusion.holder, self.weights[self.task.fusion.holder])
        assert head is not None
        with torch.no_grad():
            return self.task.apply_head(head, torch.cat(embeddings, dim=-1))

    def objective(self, samples: int | None = None) -> float:
        """Mean loss on the (first `samples`) training samples plus the regulariser."""
        scores = self.scores([silo.train[:samples] for silo in self.data.silos])
        losses = self.task.loss.value(scores, self.data.y_train[:samples])
        penalty = sum(float(self.task.regulariser.penalty(weights)) for weights in self.weights)
        value = float(losses.mean(dtype=torch.float64)) + penalty
        if not np.isfinite(value):
            raise TrainingError(self._diverged("the training loss is"))
        return value

    def evaluate(self, metrics: Sequence[str] | None = None) -> dict[str, float]:
        """Metrics on the test samples."""
        names = default_metrics(self.data.target) if metrics is None else metrics
        scores = self.scores([silo.test for silo in self.data.silos])
        if not torch.isfinite(scores).all():
            raise TrainingError(self._diverged("a test score is"))
        return evaluate(names, scores, self.data.y_test, self.task.loss)

    def snapshot(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything a later round depends on, as tensors and plain data."""
        tensors = {f"block.{j}": weights for j, weights in enumerate(self.weights)}
        tensors["hubs"] = torch.as_tensor(self.federation.traffic.clocks.hubs)
        return tensors, {"round": self.round, "meter": self.meter.snapshot()}

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        like = self.blocks.base
        found = tuple(tensors[f"block.{j}"].to(block) for j, block in enumerate(like))
        assert [f.shape for f in found] == [block.shape for block in like]
        self.blocks = Blocks(found)
        self.federation.traffic.clocks.hubs = tensors["hubs"].numpy().copy()
        self.federation.traffic.meter = Meter.restore(plain["meter"])
        self.round = int(plain["round"])


def _move(data: FederatedData, device: str, precision: torch.dtype) -> FederatedData:
    silos = tuple(
        replace(silo, train=silo.train.to(device, precision), test=silo.test.to(device, precision))
        for silo in data.silos
    )
    kind = precision if data.y_train.is_floating_point() else torch.int64
    return replace(data, silos=silos, y_train=data.y_train.to(device, kind), y_test=data.y_test.to(device, kind))


def _check_topology(data: FederatedData, algorithm: Algorithm, *, single: bool) -> None:
    name = type(algorithm).__name__
    if data.groups is not None and len(np.unique(data.groups)) > 1 and not algorithm.topology.above:
        raise ConfigError(
            f"algorithm {name} runs on {algorithm.topology}, the federation has {len(np.unique(data.groups))} groups: "
            "set federation.groups = 1"
        )
    if single:
        for silo in data.silos:
            if silo.clients > 1:
                raise ConfigError(
                    f"algorithm {name} takes one client a silo, '{silo.name}' has {silo.clients}: "
                    "set clients = 1, or use TDCD"
                )
    if algorithm.topology.vertical is None and len(data.silos) > 1:
        raise ConfigError(f"algorithm {name} takes one silo, this federation has {len(data.silos)}: use TDCD")
