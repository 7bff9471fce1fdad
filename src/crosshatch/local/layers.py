"""Chains of linear layers for many clients at once, forwards and backwards by hand.

`ChainPass` is a pass under weights that stay, and `Copies` are layers that take steps. Shapes: K clients, m rows each
(padded), d inputs, o outputs; a layer's product for all clients is a batched one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def size(self) -> int:
        """Numbers in the layer: weights (outputs x inputs), then the bias."""
        return self.outputs * (self.inputs + self.bias)


Chain = tuple[Layer, ...]


@dataclass(frozen=True)
class Weights:
    """One layer of all clients: weight (K, o, d), bias (K, 1, o) or None."""

    weight: Tensor
    bias: Tensor | None


@dataclass(frozen=True, eq=False)
class ChainPass:
    """A forward pass of G silos with equal chains, computed in one go, and the way back from it."""

    chain: Chain
    weights: Tensor  # (G, p)
    x: Tensor  # (G, n, d)
    outputs: tuple[Tensor, ...]  # of every layer, (G, n, o)

    @classmethod
    def through(cls, chain: Chain, weights: Sequence[Tensor], x: Tensor) -> ChainPass:
        """The pass of samples x (G, n, ...) through the layers at the beginning of each silo's flat vector (p,)."""
        flat = weights[0].unsqueeze(0) if len(weights) == 1 else torch.stack(list(weights))
        x = x if x.dim() == 3 else x.flatten(2)
        return cls(chain, flat, x, tuple(_forward(split(flat, chain), [layer.activation for layer in chain], x)))

    def gradient(self, at_outputs: Tensor) -> Tensor:
        """The gradient of the layers as flat vectors (G, p), from that at the chain's outputs (G, n, o)."""
        # Nothing goes back through a first layer, so a chain of one needs no weights here.
        layers = split(self.weights, self.chain) if len(self.chain) > 1 else []
        gradients, _ = _backward(self.chain, layers, self.outputs, at_outputs, need_input=False)
        pieces = []
        for layer, below, gradient in zip(self.chain, [self.x, *self.outputs[:-1]], gradients, strict=True):
            pieces.append(torch.bmm(gradient.mT, below).flatten(1))
            if layer.bias:
                pieces.append(gradient.sum(1))
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=1)

    def one(self, place: int) -> ChainPass:
        where = slice(place, place + 1)
        return ChainPass(self.chain, self.weights[where], self.x[where], tuple(out[where] for out in self.outputs))


class Copies:
    """The layers of K clients, each with a copy of its own that takes steps.

    The tensors are separate, since torch's batched product takes a slow path into results that do not lie together in
    memory. The outputs of the first step may be `known` already.
    """

    def __init__(self, chain: Chain, flat: Tensor, *, known: Sequence[Tensor] = (), need_input: bool = True) -> None:
        """Take the layers from the beginning of flat vectors (K, p); `need_input`: something lies in front of them."""
        self.chain, self.need_input, self.activations = chain, need_input, [layer.activation for layer in chain]
        views = [one for layer in split(flat, chain) for one in (layer.weight, layer.bias) if one is not None]
        self.tensors = [view.clone(memory_format=torch.contiguous_format) for view in views]
        own = iter(self.tensors)
        self.layers = [Weights(next(own), next(own) if layer.bias else None) for layer in chain]
        self.x, self.outputs, self.known = flat, known, known

    def flat(self) -> list[Tensor]:
        """All of it in the order of flat vectors."""
        return [tensor.flatten(1) for tensor in self.tensors]

    def outputs_for(self, x: Tensor) -> Tensor:
        """The chain's outputs (K, m, o) for its inputs x (K, m, d); every layer's are kept for `step`."""
        self.x, self.outputs, self.known = x, self.known or _forward(self.layers, self.activations, x), ()
        return self.outputs[-1]

    def step(self, gradient: Tensor, eta: float, decay: float) -> Tensor:
        """One gradient step, in place, from the gradient at the outputs; returns that at the inputs before it."""
        gradients, back = _backward(self.chain, self.layers, self.outputs, gradient, need_input=self.need_input)
        for weights, below, at_outputs in zip(self.layers, [self.x, *self.outputs[:-1]], gradients, strict=True):
            weights.weight.baddbmm_(at_outputs.mT, below, beta=decay, alpha=-eta)
            if weights.bias is not None:
                weights.bias.mul_(decay).sub_(at_outputs.sum(1, keepdim=True), alpha=eta)
        return back

    def back(self, gradient: Tensor) -> Tensor:
        """The gradient at the inputs alone, for layers that stay."""
        return _backward(self.chain, self.layers, self.outputs, gradient, need_input=True)[1]


def split(flat: Tensor, chain: Chain) -> list[Weights]:
    """Layers as views of flat vectors (K, p); p may be longer than the chain."""
    layers = []
    offset = 0
    for layer in chain:
        end = offset + layer.outputs * layer.inputs
        weight = flat[:, offset:end].view(len(flat), layer.outputs, layer.inputs)
        bias = flat[:, end : offset + layer.size].unsqueeze(1) if layer.bias else None
        layers.append(Weights(weight, bias))
        offset += layer.size
    return layers


def _forward(layers: Sequence[Weights], activations: Sequence[str], x: Tensor) -> list[Tensor]:
    """Outputs of every layer behind its activation, (K, m, o) each."""
    outputs: list[Tensor] = []
    for layer, activation in zip(layers, activations, strict=True):
        weight, bias = layer.weight, layer.bias
        if x.shape[0] == 1:
            x = functional.linear(x, weight[0], None if bias is None else bias[0, 0])
        elif weight.shape[1] > 1:
            x = torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias, x, weight.mT)
        else:  # products with a column vector are slow in batches, with a row vector they are not
            x = torch.bmm(weight, x.mT).mT
            x = x if bias is None else x.add_(bias)
        x = x if activation == "none" else activate(activation, x)
        outputs.append(x)
    return outputs


def _backward(
    chain: Chain, layers: Sequence[Weights], outputs: Sequence[Tensor], gradient: Tensor, *, need_input: bool = True
) -> tuple[list[Tensor], Tensor]:
    """Gradients before every layer's activation, (K, m, o) each, and at the chain's input (unless there is no need)."""
    gradients: list[Tensor] = []
    for number in range(len(chain) - 1, -1, -1):
        if chain[number].activation != "none":
            gradient = slope(chain[number].activation, gradient, outputs[number])
        gradients.append(gradient)
        if number or need_input:
            weight = layers[number].weight
            gradient = gradient * weight if weight.shape[1] == 1 else torch.bmm(gradient, weight)
    return gradients[::-1], gradient


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
