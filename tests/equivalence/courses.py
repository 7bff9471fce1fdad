"""Weights round by round, of runs that are to be compared."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crosshatch import Simulator
from crosshatch.data.federated import FederatedData
from crosshatch.task.task import Task


def course(
    data: FederatedData, task: Task, algorithm: Any, rounds: int, **options: Any
) -> tuple[Simulator, list[tuple[Tensor, ...]]]:
    """The weights after every round."""
    simulator = Simulator(data, task, algorithm, **{"seed": 3, "threads": 2, "precision": torch.float64, **options})
    weights = []
    for _ in range(rounds):
        simulator.run_round()
        weights.append(simulator.weights)
    return simulator, weights


def furthest(ours: list[tuple[Tensor, ...]], theirs: list[tuple[Tensor, ...]]) -> list[float]:
    """The largest difference after every round."""
    return [float((torch.cat(x) - torch.cat(y)).abs().max()) for x, y in zip(ours, theirs, strict=True)]
