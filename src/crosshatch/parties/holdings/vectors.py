"""One silo's part of the model as hubs have it: flat vectors, and what travels of them. No module, no data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from crosshatch.local.moments import Moments
from crosshatch.task.optimisers import Optimiser, state_size
from crosshatch.task.task import Task
from crosshatch.trees import Layout, flatten


@dataclass(frozen=True)
class Vectors:
    """A silo's vector (p,): its block's numbers, and behind them the head's where it trains the head.

    `first` is the vector at the start of the run; what is not trained of it stays so and is never sent.
    """

    first: Tensor
    block_size: int
    trained: Tensor | None
    head_size: int  # how many of the head's numbers travel
    trained_head: Tensor | None
    optimiser: Optimiser | None = None
    free: Tensor | None = None  # true where the regulariser leaves a number of the block alone

    @classmethod
    def of(cls, task: Task, silo: int) -> Vectors:
        head, block = task.head, task.blocks[silo]
        pieces = [flatten(block), *([flatten(head)] if head is not None and task.holds_head(silo) else [])]
        size = 0 if head is None else Layout.of(head).size
        travels = size if task.trained_head is None else len(task.trained_head)
        return cls(
            torch.cat(pieces),
            Layout.of(block).size,
            task.trained[silo],
            travels,
            task.trained_head,
            task.optimiser,
            task.free[silo],
        )

    @cached_property
    def size(self) -> int:
        """How many numbers travel."""
        return len(self.first) if self.trained is None else len(self.trained)

    def sent(self, weights: Tensor) -> Tensor:
        """What travels of a vector (p,)."""
        return weights if self.trained is None else weights[self.trained]

    def filled(self, arrived: Tensor) -> Tensor:
        """The whole vector (p,) from what travelled."""
        return arrived.clone() if self.trained is None else self.first.index_copy(0, self.trained, arrived)

    def head_of(self, weights: Tensor) -> Tensor:
        return weights[self.block_size :]

    def sent_head(self, weights: Tensor) -> Tensor:
        head = self.head_of(weights)
        return head if self.trained_head is None else head[self.trained_head]

    def no_moments(self) -> Moments | None:
        """The optimiser's state before the first step."""
        if self.optimiser is None:
            return None
        return Moments.of(self.optimiser, self.first.new_zeros(state_size(self.optimiser, len(self.first))))

    def sent_moments(self, moments: Moments) -> Tensor:
        """What travels of a state: of each moment the trained numbers, and the count behind them where there is one."""
        count = [moments.count] if moments.optimiser.counts else []
        return torch.cat([*(self.sent(moment) for moment in moments.moments), *count])

    def filled_moments(self, arrived: Tensor) -> Moments:
        """The state from what travelled; what is not trained has none."""
        short = Moments.of(self.optimiser, arrived)
        if self.trained is None:
            return short
        zero = torch.zeros_like(self.first)
        return Moments(short.optimiser, [zero.index_copy(0, self.trained, one) for one in short.moments], short.count)
