"""A layer that stays implicit: gradient steps move it only within the span of the rows it has seen.

With X those rows, W0 where the layer started and c the product of the decays, it is W = c W0 - S^T X. Nobody's own
layer is written down: the products with W0 are shared by all clients, and the average of all W is one product.

On one batch for Q steps (`Gram`) X stays. With G the gradient at the outputs Z, decay a and step size eta, a step is

    Z <- a Z - eta (X X^T + 1) G,    S <- a S + eta G,

so the features are touched twice per round instead of twice per step. `+ 1` is the bias. Behind layers that take steps
themselves (`Growing`) X gets new rows every step, and the layer's outputs for its inputs A are

    c (A W0^T + b0) - (A X^T + 1) S.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crosshatch.local.layers import Copies, Layer, activate, linear_outputs, slope, split
from crosshatch.local.stacked.stack import PaddedRows, ProblemJobs, numbers_at_start


class Implicit:
    """A bucket's layer: rows X (K, r, d), accumulated S (K, r, o), factor c; its numbers stand at `offset`."""

    def __init__(self, members: Sequence[ProblemJobs], layer: Layer, offset: int, x: Tensor, proximal: float) -> None:
        self.members, self.layer, self.x, self.proximal = members, layer, x, proximal
        self.where = slice(offset, offset + layer.size)
        self.accumulated = x.new_zeros(*x.shape[:2], layer.outputs)
        self.factor = 1.0
        self.tensors: list[Tensor] = []  # the layer itself is not in memory
        self.biases: list[Tensor] = []
        # The places of each member's jobs, and the layer they start from: (1, size), or theirs (jobs, size).
        self.starts = [(mine.where, mine.start.view(-1, mine.start.shape[-1])[:, self.where]) for mine in members]

    def at_start(self, x: Tensor) -> Tensor:
        """Outputs (K, m, o) for inputs x (K, m, d) at the start, before the activation."""
        outputs = x.new_empty(*x.shape[:2], self.layer.outputs)
        for where, start in self.starts:
            rows = x[where].flatten(0, 1).unsqueeze(0) if len(start) == 1 else x[where]
            outputs[where] = linear_outputs(self.layer, start, rows).view_as(outputs[where])
        return outputs

    def blocks(self) -> list[Tensor]:
        """Every client's layer in the end, in the order of flat vectors."""
        layer = Copies((self.layer,), numbers_at_start(self.members, self.where))
        weight, *bias = layer.tensors
        weight.baddbmm_(self.accumulated.mT, self.x, beta=self.factor, alpha=-1)
        for tensor in bias:
            tensor.mul_(self.factor).sub_(self.accumulated.sum(1, keepdim=True))
        return layer.flat(layer.tensors)

    def weighted_sums(self, client_weights: Tensor) -> Tensor:
        """The sum of the layers under weights (K,), of each problem that has jobs here: (problems, size)."""
        sums = []
        for mine in self.members:  # a product over all rows of its jobs
            weights, start = client_weights[mine.where], mine.start[..., self.where]
            scaled = self.accumulated[mine.where] * weights.view(-1, 1, 1)
            change = scaled.flatten(0, 1).mT @ self.x[mine.where].flatten(0, 1)
            total = start * weights.sum() if start.dim() == 1 else weights @ start
            total *= self.factor
            total[: change.numel()] -= change.flatten()
            if self.layer.bias:
                total[change.numel() :] -= scaled.sum((0, 1))
            sums.append(total)
        return torch.stack(sums)


class Gram(Implicit):
    """The first layer on one batch: its outputs Z (K, m, o) take the steps."""

    def __init__(self, members: Sequence[ProblemJobs], layer: Layer, rows: PaddedRows, proximal: float) -> None:
        super().__init__(members, layer, 0, rows.x, proximal)
        self.outputs = self.activated = self.at_start(rows.x)
        self.begin = self.outputs.clone() if self.proximal else None
        self.products = torch.bmm(rows.x, rows.x.mT)
        if layer.bias:
            self.products += 1

    def outputs_for(self, x: Tensor) -> Tensor:
        """The layer's outputs for its samples x, behind its activation."""
        assert x is self.x
        if self.layer.activation != "none":
            self.activated = activate(self.layer.activation, self.outputs.clone())  # works in place
        return self.activated

    def step(self, gradient: Tensor, eta: float, decay: float) -> Tensor:
        """One gradient step, on the outputs, from the gradient behind the activation; returns that before it."""
        if self.layer.activation != "none":
            gradient = slope(self.layer.activation, gradient, self.activated)
        if self.layer.outputs == 1:  # the products are symmetric, and a row vector is quicker
            self.outputs.mT.baddbmm_(gradient.mT, self.products, beta=decay, alpha=-eta)
        else:
            self.outputs.baddbmm_(self.products, gradient, beta=decay, alpha=-eta)
        self.accumulated.mul_(decay).add_(gradient, alpha=eta)
        self.factor = self.factor * decay + eta * self.proximal  # the proximal term adds some of the start
        if self.begin is not None:
            self.outputs.add_(self.begin, alpha=eta * self.proximal)
        return gradient


class Growing(Implicit):
    """A layer behind others, for `steps` steps: every step its inputs are further rows."""

    def __init__(
        self, members: Sequence[ProblemJobs], layer: Layer, offset: int, rows: PaddedRows, steps: int, proximal: float
    ) -> None:
        room = rows.scale.new_zeros(len(rows.scale), steps * rows.scale.shape[1], layer.inputs)
        super().__init__(members, layer, offset, room, proximal)
        self.seen = 0  # rows
        self.activated = self.x

    def outputs_for(self, x: Tensor) -> Tensor:
        """The layer's outputs for inputs x (K, m, d), behind its activation."""
        outputs = self.at_start(x).mul_(self.factor)
        if self.seen:
            products = torch.bmm(x, self.x[:, : self.seen].mT)
            if self.layer.bias:
                products += 1
            outputs.baddbmm_(products, self.accumulated[:, : self.seen], alpha=-1)
        self.x[:, self.seen : self.seen + x.shape[1]] = x
        self.activated = activate(self.layer.activation, outputs)
        return self.activated

    def step(self, gradient: Tensor, eta: float, decay: float) -> Tensor:
        """One gradient step from the gradient behind the activation; returns that at the inputs, before the step."""
        gradient = slope(self.layer.activation, gradient, self.activated)
        back = self._at_inputs(gradient)
        self.accumulated.mul_(decay)
        self.factor = self.factor * decay + eta * self.proximal
        rows = slice(self.seen, self.seen + gradient.shape[1])
        torch.mul(gradient, eta, out=self.accumulated[:, rows])
        self.seen = rows.stop
        return back

    def _at_inputs(self, gradient: Tensor) -> Tensor:
        back = gradient.new_empty(*gradient.shape[:2], self.layer.inputs)
        for where, start in self.starts:
            (weights,) = split(start, (self.layer,))
            rows = gradient[where].flatten(0, 1).unsqueeze(0) if len(start) == 1 else gradient[where]
            back[where] = torch.matmul(rows, weights.weight).view_as(back[where])
        back.mul_(self.factor)
        if self.seen:
            products = torch.bmm(gradient, self.accumulated[:, : self.seen].mT)
            back.baddbmm_(products, self.x[:, : self.seen], alpha=-1)
        return back
