"""A layer that stays implicit: gradient steps move it only within the span of the rows it has seen.

With X those rows, W0 where the layer started and c the product of the decays, it is W = c W0 - S^T X. Nobody's own
layer is written down: clients that start alike share the products with W0, and the average of all W is one product.

With G the gradient at the outputs, decay a and step size eta, a step is S <- a S + eta G, and the layer's outputs for
its inputs A are

    c (A W0^T + b0) - (A X^T + 1) S,

where `+ 1` is the bias. On one batch for Q steps A is X and stays, so the features are touched twice per round instead
of twice per step. Behind layers that take steps themselves X gets new rows every step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crosshatch.local.layers import Layer, activate, slope, split
from crosshatch.local.stacked.stack import PaddedRows, ProblemJobs


class Implicit:
    """A bucket's layer, its numbers at `offset`: rows X (K, r, d), accumulated S (K, r, o), factor c.

    Its inputs are the samples, or behind other layers further rows in each of so many `steps`.
    """

    def __init__(
        self, members: Sequence[ProblemJobs], layer: Layer, offset: int, rows: PaddedRows, steps: int | None
    ) -> None:
        self.layer, self.stays, self.seen, self.factor = layer, steps is None, 0, 1.0
        jobs, longest, _ = rows.scale.shape
        self.x = rows.x if steps is None else rows.scale.new_zeros(jobs, steps * longest, layer.inputs)
        self.accumulated = self.x.new_zeros(*self.x.shape[:2], layer.outputs)
        self.begin = self.products = self.activated = self.x  # of the newest inputs
        self.tensors: list[Tensor] = []  # the layer itself is not in memory
        own = slice(offset, offset + layer.size)
        # The places of each member's jobs, and the layer they start from: of one, or of all of them.
        self.starts = [
            (mine.where, split(mine.start.view(-1, mine.start.shape[-1])[:, own], (layer,))[0]) for mine in members
        ]

    def _times_start(self, rows: Tensor, *, back: bool = False) -> Tensor:
        """Inputs (K, m, d) times W0^T, with its bias; on the way `back` gradients (K, m, o) times W0."""
        found = rows.new_empty(*rows.shape[:2], self.layer.inputs if back else self.layer.outputs)
        for where, start in self.starts:
            mine = rows[where].flatten(0, 1).unsqueeze(0) if len(start.weight) == 1 else rows[where]
            if self.layer.outputs == 1 and not back:  # by a column vector a batch is slow, by a row vector it is not
                product = torch.bmm(start.weight, mine.mT).mT
            else:
                product = torch.bmm(mine, start.weight if back else start.weight.mT)
            if start.bias is not None and not back:
                product += start.bias
            found[where] = product.view(found[where].shape)
        return found

    def outputs_for(self, x: Tensor) -> Tensor:
        """The layer's outputs for inputs x (K, m, d), behind its activation."""
        if not (self.stays and self.seen):
            rows = self.x if self.stays else self.x[:, : self.seen]
            self.begin, self.products = self._times_start(x), torch.bmm(x, rows.mT)
            if self.layer.bias:
                self.products += 1
        if not self.stays:
            self.x[:, self.seen : self.seen + x.shape[1]] = x
        begin, products, accumulated = self.begin, self.products, self.accumulated[:, : self.products.shape[2]]
        if self.layer.outputs == 1:
            outputs = torch.baddbmm(begin.mT, accumulated.mT, products.mT, beta=self.factor, alpha=-1).mT
        else:
            outputs = torch.baddbmm(begin, products, accumulated, beta=self.factor, alpha=-1)
        kind = self.layer.activation
        self.activated = outputs if kind == "none" else activate(kind, outputs)
        return self.activated

    def step(self, gradient: Tensor, eta: float, decay: float) -> Tensor:
        """One gradient step from that behind the activation; returns that at the inputs, where something lies there."""
        kind = self.layer.activation
        gradient = gradient if kind == "none" else slope(kind, gradient, self.activated)
        back = gradient if self.stays else self._at_inputs(gradient)
        self.accumulated.mul_(decay)
        self.factor *= decay
        first = 0 if self.stays else self.seen
        self.seen = first + gradient.shape[1]
        self.accumulated[:, first : self.seen].add_(gradient, alpha=eta)
        return back

    def _at_inputs(self, gradient: Tensor) -> Tensor:
        back = self._times_start(gradient, back=True).mul_(self.factor)
        products = torch.bmm(gradient, self.accumulated[:, : self.seen].mT)
        return back.baddbmm_(products, self.x[:, : self.seen], alpha=-1)

    def flat(self) -> list[Tensor]:
        """Every client's layer as it is now, in the order of flat vectors."""
        weight, bias = self.x.new_empty(len(self.x), self.layer.outputs, self.layer.inputs), self.accumulated.sum(1)
        for where, start in self.starts:
            accumulated, x = self.accumulated[where].mT, self.x[where]
            torch.baddbmm(start.weight, accumulated, x, beta=self.factor, alpha=-1, out=weight[where])
            if start.bias is not None:
                bias[where] = start.bias[:, 0] * self.factor - bias[where]
        return [weight.flatten(1), *([bias] if self.layer.bias else [])]

    def sums(self, weights: Tensor) -> list[list[Tensor]]:
        """For each member the sum of its jobs' layers under weights (K,), in the order of flat vectors."""
        found = []
        for where, start in self.starts:  # a product over all rows of its jobs
            scaled = self.accumulated[where] * weights[where].view(-1, 1, 1)
            change = scaled.flatten(0, 1).mT @ self.x[where].flatten(0, 1)
            shares = weights[where] if len(start.weight) > 1 else weights[where].sum(0, keepdim=True)
            pieces = [torch.tensordot(shares, start.weight, 1).mul_(self.factor).sub_(change).flatten()]
            if start.bias is not None:
                pieces.append((shares @ start.bias[:, 0]).mul_(self.factor).sub_(scaled.sum((0, 1))))
            found.append(pieces)
        return found
