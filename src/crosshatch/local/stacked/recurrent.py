"""An LSTM layer for many clients at once, forwards and backwards by hand.

For a hundred rows per client the library's kernel spends a third of its time on its own calls; stacked, K clients share
them. Gates stand in torch's order i, f, g, o. Since tanh(z) = 2 sigmoid(2 z) - 1, the rows of g are taken twice and
all four gates are one sigmoid: with s the gates, c the cells and h the states,

    s = sigmoid(x W^T + h U^T + b),    c <- f c + i (2 g - 1),    h = o tanh(c).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crosshatch.local.layers import Chain, Layer
from crosshatch.task.blocks.built_in import LSTM


@dataclass(frozen=True)
class Cell:
    """Shape of an LSTM layer."""

    steps: int
    inputs: int
    hidden: int

    @property
    def size(self) -> int:
        """Numbers in the layer: both matrices, then both biases."""
        return 4 * self.hidden * (self.inputs + self.hidden + 2)

    def numbers(self, rows: int) -> int:
        """About how many numbers are at work for a client with this number of rows."""
        return 8 * self.hidden * self.steps * rows

    def arranged(self, x: Tensor) -> Tensor:
        """Samples (K, m, ...) as sequences, (t, K, m, inputs)."""
        return x.view(*x.shape[:2], self.steps, -1).permute(2, 0, 1, 3).contiguous()


def as_recurrent(module: nn.Module) -> tuple[Cell, Chain] | None:
    """The layer and the chain behind its last state, for our own block as it was built; None for any other module."""
    if type(module) is not LSTM or any(m._forward_hooks or m._forward_pre_hooks for m in module.modules()):
        return None
    if not all(parameter.requires_grad for parameter in module.parameters()):
        return None
    steps, inputs = module.input_shape
    hidden = module.lstm.hidden_size
    return Cell(steps, inputs, hidden), (Layer(hidden, module.output.out_features, True, "none"),)


class Recurrent:
    """The LSTM layers of K clients."""

    def __init__(self, cell: Cell, flat: Tensor) -> None:
        """Take the layers from the beginning of flat vectors (K, p)."""
        self.hidden = cell.hidden
        gates = 4 * cell.hidden
        sizes = [gates * cell.inputs, gates * cell.hidden, gates, gates]
        shapes = [(gates, cell.inputs), (gates, cell.hidden), (1, gates), (1, gates)]
        pieces = torch.split(flat[:, : cell.size], sizes, dim=1)
        self.tensors = [p.reshape(-1, *shape).clone() for p, shape in zip(pieces, shapes, strict=True)]
        self.twice = flat.new_ones(gates)  # 2 for the rows of g
        self.twice[2 * cell.hidden : 3 * cell.hidden] = 2
        self.seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # s, c, tanh c, h of every point in time
        self.x, self.u = flat, flat

    def flat(self) -> list[Tensor]:
        """All of it in the order of flat vectors."""
        return [tensor.flatten(1) for tensor in self.tensors]

    def outputs_for(self, x: Tensor) -> Tensor:
        """The last states (K, m, hidden) for samples x (t, K, m, inputs); everything before is kept for `step`."""
        weight, recurrent, bias, another = self.tensors
        w = (weight * self.twice.unsqueeze(1)).mT
        self.x, self.u = x, recurrent * self.twice.unsqueeze(1)
        b, u = (bias + another) * self.twice, self.u.mT
        self.seen = []
        cells = states = x.new_zeros(*x.shape[1:3], self.hidden)
        for now in x:
            gates = torch.baddbmm(b, now, w).baddbmm_(states, u).sigmoid_()
            i, f, g, o = gates.view(*gates.shape[:2], 4, self.hidden).unbind(2)
            cells = (f * cells).addcmul_(i, g, value=2).sub_(i)
            squashed = torch.tanh(cells)
            states = o * squashed
            self.seen.append((gates, cells, squashed, states))
        return states

    def step(self, gradient: Tensor, eta: float, decay: float) -> Tensor:
        """One gradient step, in place, from the gradient at the last states; nothing lies in front of these."""
        changes = [torch.zeros_like(tensor) for tensor in self.tensors[:3]]  # both biases take the same
        at_state, at_cell = gradient, torch.zeros_like(gradient)
        for t in range(len(self.seen) - 1, -1, -1):
            gates, _, squashed, _ = self.seen[t]
            i, f, g, o = gates.view(*gates.shape[:2], 4, self.hidden).unbind(2)
            opened = at_state * o
            at_cell.add_(opened).sub_(opened.mul_(squashed).mul_(squashed))
            at_gates = torch.empty_like(gates)
            to_i, to_f, to_g, to_o = at_gates.view(*gates.shape[:2], 4, self.hidden).unbind(2)
            torch.mul(at_cell, g, out=to_i).mul_(2).sub_(at_cell)
            torch.mul(at_cell, i, out=to_g).mul_(2)
            torch.mul(at_state, squashed, out=to_o)
            if t:
                torch.mul(at_cell, self.seen[t - 1][1], out=to_f)
            else:
                to_f.zero_()
            at_gates.mul_(gates - gates * gates)
            changes[0].baddbmm_(at_gates.mT, self.x[t])
            changes[2] += at_gates.sum(1, keepdim=True)
            if t:
                changes[1].baddbmm_(at_gates.mT, self.seen[t - 1][3])
                at_state = torch.bmm(at_gates, self.u)
                at_cell.mul_(f)
        self.seen = []
        scales = (self.twice.unsqueeze(1), self.twice.unsqueeze(1), self.twice, self.twice)
        for tensor, change, scale in zip(self.tensors, (*changes, changes[2]), scales, strict=True):
            tensor.mul_(decay).sub_(change * scale, alpha=eta)
        return gradient
