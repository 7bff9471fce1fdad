"""What a client computes with its block in an evaluation: outputs in evaluation mode, and no steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, final

import torch
from torch import Tensor

from crosshatch.local.forward import in_pieces
from crosshatch.local.modules import evaluating
from crosshatch.parties.holdings.model import Model
from crosshatch.parties.holdings.steps import Work


@final
@dataclass(frozen=True)
class EvaluationSteps:
    """Stands where a client that trains has the way it takes its steps."""

    model: Model

    def embed(self, block: Tensor, x: Tensor, seed: tuple[int, int, int]) -> Tensor:  # noqa: ARG002
        """Embeddings (n, e) of rows x (n, ...), without random numbers, piece by piece."""
        with torch.no_grad(), evaluating(self.model.block):
            return torch.cat([self.model.embed(block, x[rows]) for rows in in_pieces(len(x)) or [slice(0)]])

    def descend(self, work: Work) -> NoReturn:
        raise AssertionError(f"a step in an evaluation, on {len(work.parts)} parts")
