"""The first layer through the rows' inner products: Q steps on one batch move it only within the span of the rows.

With X a client's rows, G the gradient at the layer's outputs Z, decay a and step size eta, a step on the weights is

    Z <- a Z - eta (X X^T + 1) G,    S <- a S + eta G,    and in the end    W = c W0 - S^T X,

so the features are touched twice a round instead of twice a step. `+ 1` is the bias, c the product of the decays.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crosshatch.simulator.local.chain import Layer
from crosshatch.simulator.local.layers import Weights, activate, copies, linear, slope, split
from crosshatch.simulator.local.stack import Jobs, Rows, Stack


class Gram:
    """A bucket's first layer: outputs Z (K, m, o), accumulated S (K, m, o), factor c."""

    def __init__(self, stack: Stack, jobs: Jobs, layer: Layer, rows: Rows) -> None:
        self.stack, self.jobs, self.layer, self.x = stack, jobs, layer, rows.x
        self.pull = stack.problems[0].pull
        self.outputs = self.activated = self._first_outputs()
        self.begin = self.outputs.clone() if self.pull else None
        self.products = torch.bmm(rows.x, rows.x.mT)
        if layer.bias:
            self.products += 1
        self.accumulated = torch.zeros_like(self.outputs)
        self.factor = 1.0

    def _first_outputs(self) -> Tensor:
        """Outputs at the start; one product a problem where its clients start alike."""
        count, rows, _ = self.x.shape
        outputs = self.x.new_empty(count, rows, self.layer.outputs)
        for mine in self.stack.by_problem(self.jobs):
            start = self.stack.problems[mine.problem].start
            if start.dim() == 1:
                x, (weights,) = self.x[mine.where].flatten(0, 1).unsqueeze(0), split(start.unsqueeze(0), (self.layer,))
            else:
                x, (weights,) = self.x[mine.where], split(start.index_select(0, mine.clients), (self.layer,))
            outputs[mine.where] = linear(x, weights).reshape(-1, rows, self.layer.outputs)
        return outputs

    def outputs_for(self, x: Tensor) -> Tensor:
        """The layer's outputs for its samples x, behind its activation."""
        assert x is self.x
        kind = self.layer.activation  # works in place
        self.activated = self.outputs if kind == "none" else activate(kind, self.outputs.clone())
        return self.activated

    def step(self, gradient: Tensor, eta: float, decay: float) -> None:
        """One gradient step, on the outputs, from the gradient behind the activation."""
        gradient = slope(self.layer.activation, gradient, self.activated)
        if self.layer.outputs == 1:  # the products are symmetric, and a row vector is quicker
            self.outputs.mT.baddbmm_(gradient.mT, self.products, beta=decay, alpha=-eta)
        else:
            self.outputs.baddbmm_(self.products, gradient, beta=decay, alpha=-eta)
        self.accumulated.mul_(decay).add_(gradient, alpha=eta)
        self.factor *= decay
        if self.begin is not None:
            self.outputs.add_(self.begin, alpha=eta * self.pull)
            self.factor += eta * self.pull

    def weights(self) -> Weights:
        """Every client's layer in the end."""
        (weights,) = copies(self.stack.start(self.jobs, slice(self.layer.size)), (self.layer,))
        weights.weight.baddbmm_(self.accumulated.mT, self.x, beta=self.factor, alpha=-1)
        if weights.bias is not None:
            weights.bias.mul_(self.factor).sub_(self.accumulated.sum(1, keepdim=True))
        return weights

    def weighted_sums(self, shares: Tensor) -> Tensor:
        """Each problem's sum (problems, size) of the layers under weights `shares` (K,)."""
        sums = shares.new_zeros(len(self.stack.problems), self.layer.size)
        for mine in self.stack.by_problem(self.jobs):
            start = self.stack.problems[mine.problem].start
            own_start = start if start.dim() == 1 else start.index_select(0, mine.clients)
            sums[mine.problem] = self._weighted_sum(shares[mine.where], mine.where, own_start)
        return sums

    def _weighted_sum(self, shares: Tensor, where: slice, start: Tensor) -> Tensor:
        """Of one problem's jobs: a product over all their rows, without anybody's own layer; `start` (p,) or (K, p)."""
        scaled = self.accumulated[where] * shares.view(-1, 1, 1)
        change = scaled.flatten(0, 1).mT @ self.x[where].flatten(0, 1)
        start = start[..., : self.layer.size]
        total = start * shares.sum() if start.dim() == 1 else shares @ start
        total *= self.factor
        total[: change.numel()] -= change.flatten()
        if self.layer.bias:
            total[change.numel() :] -= scaled.sum((0, 1))
        return total
