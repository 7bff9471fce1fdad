"""Steps of K jobs with an optimiser: their moments lie as what is trained lies, tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crosshatch.local.problem import Problem
from crosshatch.local.stacked.stack import ProblemJobs
from crosshatch.task.optimisers import Optimiser


def states_of(problems: Sequence[Problem], members: Sequence[ProblemJobs]) -> Tensor:
    """The states (K, s) of a bucket's jobs."""
    states = [(problems[mine.number].state, mine.clients) for mine in members]
    return torch.cat([state.index_select(0, clients) for state, clients in states if state is not None])


def add_pulls(gradients: Sequence[Tensor], before: Sequence[Tensor], anchor: Sequence[Tensor], pull: float) -> None:
    """Add `pull` times the way from the anchor (none: from zero), in place."""
    for i, (gradient, now) in enumerate(zip(gradients, before, strict=True)):
        gradient.add_(now - anchor[i] if anchor else now, alpha=pull)


def take_step(
    optimiser: Optimiser,
    tensors: Sequence[Tensor],
    before: Sequence[Tensor],
    moments: Sequence[Sequence[Tensor]],
    count: Tensor,
    step_size: float,
    alive: Tensor | None,
) -> tuple[list[list[Tensor]], Tensor]:
    """One step in place in `tensors`, which hold the gradients; the moments and counts (K, 1, 1) after it.

    Where `alive` (K, 1, 1) is false a job has no rows: nothing of it changes.
    """
    after: list[list[Tensor]] = [[] for _ in moments]
    counted = count + 1
    for i, (tensor, old) in enumerate(zip(tensors, before, strict=True)):
        mine = [moment[i] for moment in moments]
        direction, new = optimiser.step(tensor, mine, counted)
        moved = torch.sub(old, direction, alpha=step_size)
        tensor.copy_(moved if alive is None else torch.where(alive, moved, old))
        for kept, one, was in zip(after, new, mine, strict=True):
            kept.append(one if alive is None else torch.where(alive, one, was))
    return after, counted if alive is None else torch.where(alive, counted, count)
