"""The gradient of a transfer task's objective where a block is a chain of layers, by hand.

The class mean is taken before the last layer, which is linear: the mean of its outputs is what it makes of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.local.layers import Chain, ChainPass, Weights, split
from crosshatch.local.problem import Part, Problem
from crosshatch.local.read_chain import as_chain


@dataclass(frozen=True)
class TransferByHand:
    """The steps of a silo along a chain; x (m, d) and signs (m,) are those of the class mean, at its holder."""

    problem: Problem
    chain: Chain
    x: Tensor | None
    signs: Tensor | None

    @classmethod
    def of(cls, problem: Problem) -> TransferByHand | None:
        """None where the task is another, or the block no chain that ends in a linear layer."""
        chain = as_chain(problem.task.blocks[problem.silo])
        if problem.task.transfer is None or chain is None or chain[-1].activation != "none":
            return None
        if problem.anchors is None:
            return cls(problem, chain, None, None)
        x, y = problem.anchors.of_round
        return cls(problem, chain, x.flatten(1), 2 * y - 1)

    def gradient(self, flat: Tensor, part: Part) -> Tensor:
        """Of the block's numbers, at the beginning of a flat vector (p,), for the mean over the rows of a part."""
        samples = ChainPass.through(self.chain, [flat], part.x.unsqueeze(0))
        own = samples.outputs[-1][0]
        if self.x is None or self.signs is None:
            at_own, _ = self.problem.transfer_slopes(own, None, part)
            return samples.gradient(at_own.unsqueeze(0))[0]
        mean = _MeanPass.through(self.chain, flat, self.x, self.signs)
        at_own, at_mean = self.problem.transfer_slopes(own, mean.value, part)
        assert at_mean is not None
        return samples.gradient(at_own.unsqueeze(0))[0].add_(mean.gradient(at_mean))


@dataclass(frozen=True)
class _MeanPass:
    """The class mean under a chain, and the way back from it."""

    below: ChainPass | None  # through all layers but the last
    last: Weights
    signs: Tensor  # (m,)
    row: Tensor  # what the last layer takes, (h,): the signed mean of its inputs

    @classmethod
    def through(cls, chain: Chain, flat: Tensor, x: Tensor, signs: Tensor) -> _MeanPass:
        below = ChainPass.through(chain[:-1], [flat], x.unsqueeze(0)) if len(chain) > 1 else None
        rows = x if below is None else below.outputs[-1][0]
        return cls(below, split(flat.unsqueeze(0), chain)[-1], signs, (signs.unsqueeze(-1) * rows).mean(0))

    @property
    def value(self) -> Tensor:
        """The class mean Phi_A (d,): of embeddings, each with the sign of its label."""
        product = self.last.weight[0] @ self.row
        return product if self.last.bias is None else product + self.last.bias[0, 0] * self.signs.mean()

    def gradient(self, at_mean: Tensor) -> Tensor:
        """Of the chain's numbers, from that at the class mean (d,)."""
        pieces = [torch.outer(at_mean, self.row).flatten()]
        if self.last.bias is not None:
            pieces.append(at_mean * self.signs.mean())
        if self.below is not None:
            at_rows = torch.outer(self.signs / len(self.signs), at_mean @ self.last.weight[0])
            pieces.insert(0, self.below.gradient(at_rows.unsqueeze(0))[0])
        return torch.cat(pieces)
