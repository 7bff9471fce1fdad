"""HSGD and JFL as a student would write them: modules, copies of them, autograd, and the paper's loops.

Yu et al., *Communication-Efficient Hybrid Federated Learning for E-health with Horizontal and Vertical Data
Partitioning*, Algorithm 1 and section VII. Nothing here is taken from the engine. The loss is half the squared error.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.data.federated import FederatedData
from crosshatch.task.fusion import Head
from crosshatch.task.task import Task
from tests.equivalence.naive import Model

Ids = npt.NDArray[np.int64]
Weights = Literal["at_work", "equal", "samples"]


class Sum(nn.Module):
    """The fusion without parameters, as a head: embeddings of one number a sample are added."""

    def forward(self, embeddings: Tensor) -> Tensor:
        """(n, 2) to (n, 1)."""
        return embeddings.sum(1, keepdim=True)


@dataclass
class Group:
    """A hospital (theta_0 and theta_1), its edge node (theta_2) and its patients' devices (theta_2,n)."""

    zero: nn.Module
    one: nn.Module
    two: nn.Module
    devices: dict[int, nn.Module] = field(default_factory=dict)
    stale: tuple[nn.Module, nn.Module, nn.Module] | None = None  # all three as they were at the last exchange


def hsgd(
    task: Task,
    data: FederatedData,
    batches: Sequence[Sequence[Ids]],
    *,
    p: int,
    q: int,
    eta: float,
    weights: Weights = "at_work",
) -> list[Tensor]:
    """Algorithm 1: the model after all intervals; `batches[interval][m]` are the rows of group m's mini-batch.

    Equation (1) is about the devices "at_work". The other `weights` are not the paper's: all devices "equal", or by
    their "samples", where a device without samples in the mini-batch stays as it is.
    """
    assert data.groups is not None
    x1, x2, y = data.silos[0].train, data.silos[1].train, data.y_train
    owner = data.silos[1].owners
    members = [np.flatnonzero(data.groups == m) for m in range(int(data.groups.max()) + 1)]
    sizes = [len(rows) for rows in members]  # K_m
    zero, one, two = start(task)  # line 1
    groups = [Group(*copy.deepcopy((zero, one, two))) for _ in members]
    last = q * len(batches)
    for t in range(last + 1):  # line 2; after the last step there are averages only
        for m, group in enumerate(groups):
            if t % q == 0 and t > 0:  # line 12: equation (1), which line 4 needs as well
                used = {int(n) for n in owner[batches[t // q - 1][m]]}
                chosen = [n for n in group.devices if n in used or weights != "at_work"]
                counts = [int((owner == n).sum()) if weights == "samples" else 1 for n in chosen]
                group.two = mean([group.devices[n] for n in chosen], counts)
        if t % p == 0 or t == last:  # line 3
            zero, one, two = (mean([getattr(g, name) for g in groups], sizes) for name in ("zero", "one", "two"))
            for group in groups:  # lines 5-9: equation (2) for everybody
                group.zero, group.one, group.two = copy.deepcopy((zero, one, two))
        for m, group in enumerate(groups if t < last else ()):
            rows = batches[t // q][m]  # line 13
            if t % q == 0:
                group.devices = {int(n): copy.deepcopy(group.two) for n in np.unique(owner[members[m]])}  # line 15
                group.stale = copy.deepcopy((group.zero, group.one, group.two))  # lines 17-21
            assert group.stale is not None
            zero0, one0, two0 = group.stale
            loss = half_squared(group.zero, group.one(x1[rows]), two0(x2[rows]), y[rows])
            descend(task, [group.one], loss, eta, head=group.zero)  # lines 23-24: equations (5) and (6)
            for n in np.unique(owner[rows]):  # lines 25-26: equation (7)
                mine, device = rows[owner[rows] == n], group.devices[int(n)]
                loss = half_squared(zero0, one0(x1[mine]), device(x2[mine]), y[mine])
                descend(task, [device], loss, eta)
    return flat(task, zero, one, two)


def jfl(task: Task, data: FederatedData, batches: Sequence[Sequence[Ids]], *, eta: float) -> list[Tensor]:
    """Joint learning with one step a round: every chosen device and a partner at its hospital train a whole model.

    The server averages all pairs.
    """
    x1, x2, y = data.silos[0].train, data.silos[1].train, data.y_train
    owner = data.silos[1].owners
    model = start(task)
    for interval in batches:
        pairs = []
        for rows in interval:
            for n in np.unique(owner[rows]):
                mine, (zero, one, two) = rows[owner[rows] == n], copy.deepcopy(model)
                loss = half_squared(zero, one(x1[mine]), two(x2[mine]), y[mine])
                descend(task, [one, two], loss, eta, head=zero)
                pairs.append((zero, one, two))
        zeros, ones, twos = zip(*pairs, strict=True)
        each = [1] * len(pairs)
        model = (mean(list(zeros), each), mean(list(ones), each), mean(list(twos), each))
    return flat(task, *model)


def start(task: Task) -> tuple[nn.Module, nn.Module, nn.Module]:
    """theta_0, theta_1 and theta_2 in double precision."""
    zero = task.fusion.module if isinstance(task.fusion, Head) else Sum()
    one, two = task.blocks
    return copy.deepcopy(zero).double(), copy.deepcopy(one).double(), copy.deepcopy(two).double()


def half_squared(zero: nn.Module, e1: Tensor, e2: Tensor, y: Tensor) -> Tensor:
    """Mean loss of some samples; only what is descended on afterwards gets a gradient."""
    scores: Tensor = zero(torch.cat([e1, e2], dim=1))
    return 0.5 * functional.mse_loss(scores[:, 0], y)


def descend(
    task: Task, blocks: Sequence[nn.Module], loss: Tensor, eta: float, *, head: nn.Module | None = None
) -> None:
    """One gradient step on the blocks, l2 / 2 |theta|^2 included, and on the head, not in equation (3)."""
    decays = [(parameter, task.regulariser.l2) for block in blocks for parameter in block.parameters()]
    decays += [] if head is None else [(parameter, 0.0) for parameter in head.parameters()]
    gradients = torch.autograd.grad(loss, [parameter for parameter, _ in decays])
    with torch.no_grad():
        for (parameter, l2), gradient in zip(decays, gradients, strict=True):
            parameter.sub_(eta * (gradient + l2 * parameter))


def mean(modules: Sequence[nn.Module], counts: Sequence[int]) -> nn.Module:
    """A module whose parameters are weighted averages."""
    result = copy.deepcopy(modules[0])
    with torch.no_grad():
        for target, *values in zip(*(m.parameters() for m in (result, *modules)), strict=True):
            target.copy_(sum(n * value for n, value in zip(counts, values, strict=True)) / sum(counts))
    return result


def flat(task: Task, zero: nn.Module, one: nn.Module, two: nn.Module) -> list[Tensor]:
    """One vector a silo, the head's behind the hospital's."""
    return Model([one, two], zero, 0 if isinstance(task.fusion, Head) else None).flat()
