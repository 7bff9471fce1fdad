"""Chains of linear layers for many clients at once, forwards and backwards by hand.

Shapes: K clients, m rows each (padded), d inputs, o outputs; a layer's product for all clients is a batched one. Layers
that take steps are tensors of their own: torch's batched product takes a slow path into results that do not lie
together in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Layer:
    """A linear layer and the activation behind it."""

    inputs: int
    outputs: int
    bias: bool
    activation: str

    @property
    def size(self) -> int:
        """Numbers in the layer: weights (outputs x inputs), then the bias."""
        return self.outputs * (self.inputs + self.bias)


Chain = tuple[Layer, ...]


@dataclass(frozen=True)
class Weights:
    """One layer of all clients: weight (K, o, d), bias (K, 1, o) or None."""

    weight: Tensor
    bias: Tensor | None

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


def copies(flat: Tensor, chain: Chain) -> list[Weights]:
    """The same, each tensor on its own."""
    return [Weights(_own(w.weight), None if w.bias is None else _own(w.bias)) for w in split(flat, chain)]


def _own(view: Tensor) -> Tensor:
    return view.clone(memory_format=torch.contiguous_format)


def size(chain: Chain) -> int:
    """Numbers in a chain."""
    return sum(layer.size for layer in chain)


def linear(x: Tensor, weights: Weights) -> Tensor:
    """Outputs (K, m, o) of one layer before its activation."""
    weight, bias = weights.weight, weights.bias
    if x.shape[0] == 1:
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
    chain: Chain, layers: Sequence[Weights], outputs: Sequence[Tensor], gradient: Tensor, *, need_input: bool = True
) -> tuple[list[Tensor], Tensor]:
    """Gradients before every layer's activation, (K, m, o) each, and at the chain's input (unless there is no need)."""
    gradients: list[Tensor] = []
    for number in range(len(chain) - 1, -1, -1):
        gradient = slope(chain[number].activation, gradient, outputs[number])
        gradients.append(gradient)
        if number or need_input:
            gradient = _to_input(gradient, layers[number].weight)
    return gradients[::-1], gradient


def step(
    layers: Sequence[Weights], inputs: Sequence[Tensor], gradients: Sequence[Tensor], eta: float, decay: float
) -> None:
    """A gradient step of all layers, in place, from what went into each and the gradient at its outputs."""
    for weights, below, gradient in zip(layers, inputs, gradients, strict=True):
        weights.weight.baddbmm_(gradient.mT, below, beta=decay, alpha=-eta)
        if weights.bias is not None:
            weights.bias.mul_(decay).sub_(gradient.sum(1, keepdim=True), alpha=eta)


def flat_gradient(chain: Chain, inputs: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """The gradients of the layers themselves, as flat vectors (K, p)."""
    pieces = []
    for layer, below, gradient in zip(chain, inputs, gradients, strict=True):
        pieces.append(torch.bmm(gradient.mT, below).flatten(1))
        if layer.bias:
            pieces.append(gradient.sum(1))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)


def _to_input(gradient: Tensor, weight: Tensor) -> Tensor:
    """Gradient at a layer's inputs, from that at its outputs."""
    return gradient * weight if weight.shape[1] == 1 else torch.bmm(gradient, weight)


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
