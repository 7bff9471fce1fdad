"""How embeddings become scores: their sum, or a trained head on all of them side by side."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn


@dataclass(frozen=True)
class Sum:
    """Scores are the sum of the blocks' outputs; every block has as many outputs as there are scores."""


@dataclass(frozen=True)
class Head:
    """Scores are `module(concatenated embeddings)`; the head is trained by the silo at index `holder`.

    Other silos work with the head as they last received it.
    """

    module: nn.Module
    holder: int


Fusion = Sum | Head
