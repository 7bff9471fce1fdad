"""An adaptive step size, found anew from the model reached so far (HSGD's strategy 3).

The gradient's norm is computed from all training samples, as only a simulation can; no message is counted for it.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor, nn

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.local.modules import evaluating
from crosshatch.schedules import Adaptive
from crosshatch.task.task import Task
from crosshatch.theory.estimate import gradient_squared
from crosshatch.theory.strategies import best_step_size

AnyOf = TypeVar("AnyOf")


def adapt(algorithm: AnyOf, schedule: Adaptive, data: FederatedData, task: Task, weights: tuple[Tensor, ...]) -> AnyOf:
    """The algorithm with the step size for these weights; as it is where their gradient is zero or not finite."""
    with without_dropout(task):
        squared = gradient_squared(data, task, weights)
    if not (math.isfinite(squared) and squared > 0):
        return algorithm
    settings: Any = algorithm
    best = best_step_size(
        squared,
        rho=schedule.rho,
        delta_squared=schedule.delta_squared,
        global_steps=settings.topology.tiers[0].interval,
        local_steps=settings.local_steps,
    )
    return with_value(algorithm, best)


def require_adaptable(algorithm: Any, task: Task, *, on_graph: bool) -> None:
    """Refuse an adaptive step size where no gradient of all samples tells of it."""
    if not isinstance(algorithm.step_size, Adaptive):
        return
    if on_graph:
        raise ConfigError(
            f"algorithm.step_size: an adaptive schedule is not for {type(algorithm).__name__}: give a number"
        )
    if task.transfer is not None:
        raise ConfigError(
            "algorithm.step_size: an adaptive schedule is not for transfer, whose class mean ties all samples "
            "together: give another one or a number"
        )
    if task.optimiser is not None:
        raise ConfigError(
            f"optimiser.name = '{task.optimiser.name}': an adaptive schedule (algorithm.step_size) is for plain "
            "steps: give another one or a number, or set optimiser.name = 'sgd'"
        )


def without_dropout(task: Task) -> AbstractContextManager[None]:
    """All modules in evaluation mode, so that what is computed depends on weights and samples alone."""
    return evaluating(nn.ModuleList(module for silo in range(len(task.blocks)) for module in task.modules_of(silo)))


def with_value(algorithm: AnyOf, value: float) -> AnyOf:
    """The algorithm with another value of its adaptive schedule."""
    settings: Any = algorithm  # every algorithm is a frozen dataclass; their protocols cannot say so
    changed: AnyOf = replace(settings, step_size=replace(settings.step_size, value=value))
    return changed
