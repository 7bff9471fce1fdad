"""What a side of an encrypted transfer knows in clear at a local step: its own pass, as whole numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.layers import Chain, ChainPass, slope, split
from crosshatch.local.problem import Problem
from crosshatch.privacy.fixed_point import FixedPoint, Whole
from crosshatch.privacy.transfer_gradients import OwnPass
from crosshatch.task.tie import Tie

Floats = npt.NDArray[np.float64]


def pull(transfer: Tie) -> float:
    """The alignment's derivative at one side: minus so many times the other's embedding, besides what is its own."""
    return transfer.weight if transfer.alignment == "product" else 2 * transfer.weight


@dataclass(frozen=True)
class Side:
    """One side's block, a chain of one or two layers, and how its numbers become whole ones."""

    name: str
    chain: Chain
    point: FixedPoint

    def _encode(self, values: Tensor, what: str, *, trained: bool = True) -> Whole:
        return self.point.encode(values.double().numpy(force=True), f"{what} of silo '{self.name}'", trained=trained)

    def through(self, block: Tensor, x: Tensor) -> ChainPass:
        """The pass of samples (n, ...) under a block (p,)."""
        return ChainPass.through(self.chain, [block], x.unsqueeze(0))

    def own_pass(self, forward: ChainPass, times: float = 1.0) -> OwnPass:
        """Of samples, every gradient to be `times` as large."""
        inputs = [self._with_ones(one, layer) for layer, one in enumerate(self._taken(forward))]
        last = self._encode(times * inputs[-1], "what a layer takes, a number", trained=len(self.chain) > 1)
        if len(self.chain) == 1:
            return OwnPass((last,))
        back = self._slopes(forward)[:, None] * self._weight(forward)
        return OwnPass(
            (self._encode(inputs[0], "a feature", trained=False), last),
            self._encode(times * back, "the derivative of an embedding"),
        )

    def mean_pass(self, forward: ChainPass, signs: Tensor) -> OwnPass:
        """Of the mean over samples (N,) with these signs."""
        inputs = [self._with_ones(one, layer) for layer, one in enumerate(self._taken(forward))]
        mean = signs / len(signs)
        last = self._encode((mean @ inputs[-1]).unsqueeze(0), "the mean of what a layer takes, a number")
        if len(self.chain) == 1:
            return OwnPass((last,))
        first = (mean[:, None] * self._slopes(forward)).T @ inputs[0]
        return OwnPass(
            (self._encode(first.unsqueeze(1), "the mean of slopes, a number"), last),
            self._encode(self._weight(forward).unsqueeze(0), "a weight"),
        )

    def half(self, values: Tensor, what: str) -> Whole:
        return self._encode(values / 2, what)

    @property
    def sizes(self) -> list[int]:
        return [layer.size for layer in self.chain]

    def flat(self, numbers: Floats) -> Tensor:
        """A gradient, layer by layer (outputs, inputs and bias), as the block's parameters lie: weights, then bias."""
        pieces, begin = [], 0
        for layer in self.chain:
            rows = numbers[begin : begin + layer.size].reshape(layer.outputs, -1)
            pieces += [rows[:, : layer.inputs].ravel(), rows[:, layer.inputs :].ravel()]
            begin += layer.size
        return torch.as_tensor(np.concatenate(pieces))

    def _taken(self, forward: ChainPass) -> list[Tensor]:
        return [one[0] for one in (forward.x, *forward.outputs[:-1])]

    def _with_ones(self, taken: Tensor, layer: int) -> Tensor:
        return torch.cat([taken, taken.new_ones(len(taken), 1)], dim=1) if self.chain[layer].bias else taken

    def _slopes(self, forward: ChainPass) -> Tensor:
        """Of the hidden units (n, h)."""
        hidden = forward.outputs[0][0]
        return slope(self.chain[0].activation, torch.ones_like(hidden), hidden)

    def _weight(self, forward: ChainPass) -> Tensor:
        """The last layer's (d, h)."""
        return split(forward.weights, self.chain)[-1].weight[0]


def clear_gradient(problem: Problem, forward: ChainPass) -> Tensor:
    """What the alignment adds of the side's own embeddings alone (p,): its squared length, for a distance."""
    transfer, own = problem.task.transfer, forward.outputs[-1]
    assert transfer is not None
    if transfer.alignment == "product":
        return torch.zeros_like(forward.weights[0])
    return forward.gradient(own * (2 * transfer.weight / own.shape[1]))[0]
