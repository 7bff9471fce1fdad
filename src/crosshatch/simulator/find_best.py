"""The best value the objective can have, for federations of linear blocks: what suboptimality is measured against."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ModelError
from crosshatch.local.visits.agent import Agent
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.theory.optimum import Optimum, find_optimum


def find_best(data: FederatedData, task: Task, *, summed: bool) -> Optimum:
    """f* of the training samples, as a sum over them or a mean; a ModelError where blocks are not linear."""
    agents = [Agent(task, k, silo.train, data.y_train, width=1) for k, silo in enumerate(data.silos)]
    curved = [task.names[agent.silo] for agent in agents if not agent.is_linear]
    if curved or task.head is not None:
        reason = f"the block of '{curved[0]}' is not linear" if curved else "a head is trained"
        raise ModelError(
            f"metric 'suboptimality' needs the best value of the objective, unknown where {reason}: leave it out"
        )
    if any(free is not None for free in task.free):
        raise ModelError(
            "metric 'suboptimality' needs the best value of the objective, unknown where biases are not penalised: "
            "leave it out, or set model.penalise_bias = true or model.bias = false"
        )
    design = torch.cat([agent.design for agent in agents], dim=1)
    x, y = (np.asarray(values.cpu(), dtype=np.float64) for values in (design, data.y_train))
    # A mean of losses plus a penalty is 1/n of their sum plus n penalties.
    scale = 1 if summed else len(y)
    found = find_optimum(x, y, task.loss, Regulariser(l2=scale * task.regulariser.l2, l1=scale * task.regulariser.l1))
    return replace(found, value=found.value / scale, zero=found.zero / scale, gap=found.gap / scale)
