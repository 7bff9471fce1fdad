"""Whose mean the class mean of a transfer task is: the samples of the silo with the labels, or some drawn per round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from crosshatch.seeds import generator
from crosshatch.task.tie import Tie


@dataclass(frozen=True)
class Anchors:
    """All samples of the silo with the labels: x (n, ...), y (n,); a round uses those numbered `drawn`, None: all."""

    transfer: Tie
    x: Tensor
    y: Tensor
    drawn: Tensor | None = None

    def for_round(self, seed: int, round: int) -> Anchors:
        """The same with the samples of a round, drawn from the shared seed."""
        size = self.transfer.mean_samples
        if size is None or size >= len(self.y):
            return self
        chosen = generator(seed, "class mean", round).choice(len(self.y), size, replace=False, shuffle=False)
        return replace(self, drawn=torch.as_tensor(chosen, device=self.x.device))

    @property
    def of_round(self) -> tuple[Tensor, Tensor]:
        """The samples of the round: x (m, ...), y (m,)."""
        if self.drawn is None:
            return self.x, self.y
        return self.x.index_select(0, self.drawn), self.y.index_select(0, self.drawn)

    def class_mean(self, embed: Callable[[Tensor], Tensor], *, every: bool = False) -> Tensor:
        """Phi_A (d,) under a block: of the round's samples, or of all of them (`every`)."""
        x, y = (self.x, self.y) if every else self.of_round
        return self.transfer.class_mean(embed(x), y)
