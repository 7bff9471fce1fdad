"""An optimiser's state taken apart, step by step, and put together again behind the block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.task.optimisers import Optimiser


@dataclass(frozen=True)
class Moments:
    """The state of one client, or of several: moments (..., p) and the number of steps (..., 1)."""

    optimiser: Optimiser
    moments: Sequence[Tensor]
    count: Tensor

    @classmethod
    def of(cls, optimiser: Optimiser | None, state: Tensor) -> Moments:
        """From flat vectors (..., s)."""
        assert optimiser is not None
        numbers = state.shape[-1] // optimiser.moments  # a count behind two moments does not make a third
        pieces = [state[..., i * numbers : (i + 1) * numbers] for i in range(optimiser.moments)]
        count = state[..., -1:] if optimiser.counts else torch.zeros_like(state[..., :1])
        return cls(optimiser, pieces, count)

    def after(self, gradient: Tensor) -> tuple[Tensor, Moments]:
        """The direction of a step (..., p), and the state after it."""
        count = self.count + 1
        direction, moments = self.optimiser.step(gradient, self.moments, count)
        return direction, Moments(self.optimiser, moments, count)

    def where(self, alive: Tensor, others: Moments) -> Moments:
        """Of those that are alive (..., 1), and for all else the others'."""
        pairs = zip((*self.moments, self.count), (*others.moments, others.count), strict=True)
        *moments, count = (torch.where(alive, own, other) for own, other in pairs)
        return Moments(self.optimiser, moments, count)

    @property
    def flat(self) -> Tensor:
        """Flat vectors (..., s), from which `of` makes the same."""
        return torch.cat([*self.moments, *([self.count] if self.optimiser.counts else [])], dim=-1)

    def behind(self, block: Tensor) -> Tensor:
        """Flat vectors: the block (..., p), and behind it the state (..., s)."""
        return torch.cat([block, self.flat], dim=-1)
