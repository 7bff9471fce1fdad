"""How embeddings become scores: their sum, or a trained head on all of them side by side."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Sum:
    """Scores are the sum of the blocks' outputs; every block has as many outputs as there are scores.

    >>> from crosshatch.task.losses import Squared
    >>> from crosshatch.task.task import Task
    >>> Task((nn.Linear(3, 1), nn.Linear(2, 1)), Sum(), Squared()).fusion
    Sum()
    """


@dataclass(frozen=True)
class Head:
    """Scores are `module(concatenated embeddings)`; the head is trained by the silo at index `holder`.

    Other silos work with the head as they last received it.

    >>> Head(nn.Linear(8 + 4, 1), holder=0).holder  # embeddings of width 8 and 4
    0
    """

    module: nn.Module
    holder: int


Fusion = Sum | Head
