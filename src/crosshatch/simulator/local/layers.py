"""Chains of linear layers for many clients at once, forwards and backwards by hand.

Shapes: K clients, m rows each (padded), d inputs, o outputs; a layer's product for all clients is a batched one. Few
large clients are rather left unpadded, (1, n, d), with a product each (`Ragged`). Layers that take steps are tensors of
their own: torch's batched product takes a slow path into results that do not lie together in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from crosshatch.simulator.local.chain import Chain


@dataclass(frozen=True)
class Ragged:
    """Samples x (1, n, d) of K clients behind one another: `counts[k]` of the k-th, whose each is in `owners` (n,)."""

    x: Tensor
    counts: list[int]
    owners: Tensor

    def each(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Every client's rows of (1, n, ...)."""
        return self._samples if rows is self.x else torch.split(rows.squeeze(0), self.counts)

    @cached_property
    def _samples(self) -> tuple[Tensor, ...]:
        return torch.split(self.x.squeeze(0), self.counts)


@dataclass(frozen=True)
class Weights:
    """One layer of all clients: weight (K, o, d), bias (K, 1, o) or None."""

    weight: Tensor
    bias: Tensor | None
    ragged: Ragged | None = None

    @cached_property
    def each(self) -> tuple[Tensor, ...]:
        """Every client's weight (o, d)."""
        return self.weight.unbind()

    def tensors(self) -> list[Tensor]:
        """Both, as the flat vector has them."""
        return [self.weight] if self.bias is None else [self.weight, self.bias]


def split(flat: Tensor, chain: Chain) -> list[Weights]:
    """Layers as views of flat vectors (K, p); p may be longer than the chain."""
    layers = []
    offset = 0
    for layer in chain:
        end = offset + layer.outputs * layer.inputs
        weight = flat[:, offset:end].view(-1, layer.outputs, layer.inputs)
        bias = flat[:, end : offset + layer.size].unsqueeze(1) if layer.bias else None
        layers.append(Weights(weight, bias))
        offset += layer.size
    return layers


def copies(flat: Tensor, chain: Chain, ragged: Ragged | None = None) -> list[Weights]:
    """The same, each tensor on its own."""
    return [Weights(_own(w.weight), None if w.bias is None else _own(w.bias), ragged) for w in split(flat, chain)]


def _own(view: Tensor) -> Tensor:
    return view.clone(memory_format=torch.contiguous_format)


def size(chain: Chain) -> int:
    """Numbers in a chain."""
    return sum(layer.size for layer in chain)


def linear(x: Tensor, weights: Weights) -> Tensor:
    """Outputs (K, m, o) of one layer before its activation."""
    weight, bias, ragged = weights.weight, weights.bias, weights.ragged
    if ragged is not None:
        z = x.new_empty(1, x.shape[1], weight.shape[1])
        for x_k, w_k, z_k in zip(ragged.each(x), weights.each, ragged.each(z), strict=True):
            torch.mm(x_k, w_k.T, out=z_k)
        return z if bias is None else z.add_(bias.squeeze(1).index_select(0, ragged.owners))
    if len(x) == 1:
        return functional.linear(x, weight[0], None if bias is None else bias[0, 0])
    if weight.shape[1] > 1:
        return torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias, x, weight.mT)
    # Products with a column vector are slow in batches, with a row vector they are not.
    z = torch.bmm(weight, x.mT).mT
    return z if bias is None else z.add_(bias)


def forward(layers: Sequence[Weights], chain: Chain, x: Tensor) -> list[Tensor]:
    """Outputs of every layer, (K, m, o) each."""
    outputs: list[Tensor] = []
    for layer, weights in zip(chain, layers, strict=True):
        x = activate(layer.activation, linear(x, weights))
        outputs.append(x)
    return outputs


def backward(
    chain: Chain,
    layers: Sequence[Weights],
    outputs: Sequence[Tensor],
    x: Tensor,
    gradient: Tensor,
    eta: float,
    decay: float,
    *,
    update: bool = True,
    need_input: bool = True,
) -> Tensor:
    """Gradient at the chain's input; with `update` the layers take their step on the way, in place."""
    for number in range(len(chain) - 1, -1, -1):
        weights, layer = layers[number], chain[number]
        below = x if number == 0 else outputs[number - 1]
        gradient = slope(layer.activation, gradient, outputs[number])
        passed_on = _to_input(gradient, weights) if number or need_input else gradient
        if update:
            _update(weights, gradient, below, eta, decay)
        gradient = passed_on
    return gradient


def _to_input(gradient: Tensor, weights: Weights) -> Tensor:
    """Gradient at a layer's inputs, from that at its outputs."""
    if weights.ragged is not None:
        each = zip(weights.ragged.each(gradient), weights.each, strict=True)
        return torch.cat([g_k @ w_k for g_k, w_k in each]).unsqueeze(0)
    return gradient * weights.weight if weights.weight.shape[1] == 1 else torch.bmm(gradient, weights.weight)


def _update(weights: Weights, gradient: Tensor, below: Tensor, eta: float, decay: float) -> None:
    """A layer's step, in place, from the gradient at its outputs and its inputs."""
    ragged = weights.ragged
    if ragged is None:
        weights.weight.baddbmm_(gradient.mT, below, beta=decay, alpha=-eta)
        bias = gradient.sum(1, keepdim=True)
    else:
        for w_k, g_k, x_k in zip(weights.each, ragged.each(gradient), ragged.each(below), strict=True):
            w_k.addmm_(g_k.T, x_k, beta=decay, alpha=-eta)
        bias = gradient.new_zeros(len(ragged.counts), 1, gradient.shape[-1])
        bias.index_add_(0, ragged.owners, gradient.squeeze(0).unsqueeze(1))
    if weights.bias is not None:
        weights.bias.mul_(decay).sub_(bias, alpha=eta)


def activate(kind: str, z: Tensor) -> Tensor:
    """The activation, in place."""
    if kind == "relu":
        return z.clamp_(min=0)
    if kind == "tanh":
        return z.tanh_()
    return z.sigmoid_() if kind == "sigmoid" else z


def slope(kind: str, gradient: Tensor, output: Tensor) -> Tensor:
    """`gradient` times the activation's derivative, found from its output; in place."""
    if kind == "relu":
        return gradient.mul_(output > 0)
    if kind == "tanh":
        return gradient.mul_(1 - output * output)
    return gradient.mul_(output * (1 - output)) if kind == "sigmoid" else gradient
