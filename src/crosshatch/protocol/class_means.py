"""Of whose samples the class mean of a transfer task is, before and during training: nobody has to ask."""

from __future__ import annotations

from dataclasses import replace

import torch

from crosshatch.data.federated import FederatedData
from crosshatch.local.anchors import Anchors
from crosshatch.task.blocks import ClassMean
from crosshatch.task.fusion import Head
from crosshatch.task.task import Task


def find_anchors(data: FederatedData, task: Task) -> Anchors | None:
    """The samples that both silos have, and behind them the holder's own; None where there is nothing to transfer."""
    if task.transfer is None:
        return None
    assert task.head_holder is not None
    x, y = data.silos[task.head_holder].train, data.y_train
    if data.alone is not None:
        x, y = torch.cat([x, data.alone.x]), torch.cat([y, data.alone.y])
    return Anchors(task.transfer, x, y)


def with_class_mean(task: Task, data: FederatedData) -> Task:
    """The task with the class mean of its initial blocks; the same where there is nothing to transfer."""
    anchors, holder, module = find_anchors(data, task), task.head_holder, task.head
    if anchors is None or holder is None:
        return task
    task.check_fit([silo.train[:2] for silo in data.silos], data.classes)
    assert isinstance(module, ClassMean)
    weights = task.initial()[holder]
    filled = ClassMean(len(module.mean), module.low).to(weights)
    with torch.no_grad():
        filled.mean.copy_(anchors.class_mean(lambda x: task.embed(holder, weights, x)))
    return replace(task, fusion=Head(filled, holder))
