"""Convolutions for many clients at once, each with filters of its own, forwards and backwards by hand.

A library's kernel takes one set of filters for a whole batch; a client with a single image leaves it mostly idle. Here
the clients are the axis of batched products. Channels stand last, so a tap of a 3x3 filter is a matrix (in, out). With
one pixel of zeros before every row of an image, and one row of zeros above it, the pixel a tap looks at is a fixed
distance away in memory: a convolution is nine products with the same pixels, shifted, and so is its way back. The
first convolution's windows do not change from step to step; they are laid out once, and it is a single product.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.local.layers import Chain
from crosshatch.local.read_chain import chain_of, plain_layers
from crosshatch.trees import Layout

_TAPS = 9
_HALVES = (2, 2)
_STAGE = 3  # modules: convolution, ReLU, pooling


@dataclass(frozen=True)
class Filters:
    """A 3x3 convolution with a border of zeros, ReLU, and 2x2 max-pooling."""

    inputs: int
    outputs: int
    ceil: bool  # pooling keeps a last odd row or column

    @property
    def size(self) -> int:
        """Numbers in the layer: weights (outputs, 3, 3, inputs), then the bias."""
        return self.outputs * (_TAPS * self.inputs + 1)


@dataclass(frozen=True)
class Images:
    """Images and the convolutions they pass."""

    shape: tuple[int, int, int]  # channels, height, width
    filters: tuple[Filters, ...]

    @property
    def size(self) -> int:
        """Numbers in all convolutions."""
        return sum(one.size for one in self.filters)

    @cached_property
    def pixels(self) -> list[tuple[int, int]]:
        """Height and width before every convolution, and behind the last."""
        found = [self.shape[1:]]
        for one in self.filters:
            height, width = found[-1]
            found.append(((height + one.ceil) // 2, (width + one.ceil) // 2))
        return found

    def numbers(self, rows: int) -> int:
        """About how many numbers are at work for a client with this number of rows."""
        values = sum(3 * h * w * one.outputs for one, (h, w) in zip(self.filters, self.pixels, strict=False))
        return rows * (values + _TAPS * prod(self.shape)) + 2 * self.size

    def arranged(self, x: Tensor) -> Tensor:
        """Samples (K, m, ...) as what the first convolution sees of them: (K, m height width, 9 channels)."""
        images = x.reshape(-1, *self.shape)
        return functional.unfold(images, 3, padding=1).mT.reshape(len(x), -1, _TAPS * self.shape[0])


def as_convolved(module: nn.Module, shape: tuple[int, ...]) -> tuple[Images, Chain] | None:
    """The convolutions of a network for samples of this shape, and the chain behind them; None for other modules."""
    layers = plain_layers(module)
    if layers is None or len(shape) != 3 or not all(parameter.requires_grad for parameter in module.parameters()):
        return None
    flat = next((i for i, layer in enumerate(layers) if type(layer) is nn.Flatten and layer.start_dim == 1), 0)
    stages = [_filters(*layers[i : i + _STAGE]) for i in range(0, flat, _STAGE)] if flat % _STAGE == 0 else []
    filters = tuple(stage for stage in stages if stage is not None)
    chain = chain_of(layers[flat + 1 :])
    if chain is None or not filters or len(filters) < len(stages):
        return None
    # A layer that stands here twice has its numbers once.
    whole = sum(one.size for one in filters) + sum(one.size for one in chain) == Layout.of(module).size
    return (Images((shape[0], shape[1], shape[2]), filters), chain) if whole else None


def _filters(c: Any, activation: Any, p: Any) -> Filters | None:
    if (type(c), type(activation), type(p)) != (nn.Conv2d, nn.ReLU, nn.MaxPool2d):
        return None
    usual = (c.kernel_size, c.stride, c.dilation, c.groups) == ((3, 3), (1, 1), (1, 1), 1) and c.bias is not None
    zeros = c.padding in ((1, 1), 1, "same") and c.padding_mode == "zeros"
    halves = all(value in (2, (2, 2)) for value in (p.kernel_size, p.stride)) and p.padding == 0 and p.dilation == 1
    return Filters(c.in_channels, c.out_channels, p.ceil_mode) if usual and zeros and halves else None


class Convolved:
    """The convolutions of K clients: for each layer its taps (9, K, inputs, outputs), and its bias (K, 1, outputs).

    The first layer's taps are one matrix (1, K, 9 inputs, outputs).
    """

    def __init__(self, images: Images, flat: Tensor) -> None:
        """Take the layers from flat vectors (K, p)."""
        self.images, self.clients = images, len(flat)
        self.tensors: list[Tensor] = []  # all that is trained: by layer its taps and its bias
        self.seen: list[tuple[Tensor, Tensor, Tensor]] = []  # inputs, pooled outputs (K m, c, h, w) and their places
        offset = 0
        for number, one in enumerate(images.filters):
            end = offset + _TAPS * one.inputs * one.outputs
            weight = flat[:, offset:end].view(-1, one.outputs, _TAPS, one.inputs)
            taps = weight.permute(2, 0, 3, 1) if number else weight.permute(0, 3, 2, 1).flatten(1, 2).unsqueeze(0)
            offset += one.size
            mine = (taps, flat[:, end:offset].unsqueeze(1))
            self.tensors += [tensor.clone(memory_format=torch.contiguous_format) for tensor in mine]
        self.taps, self.biases = self.tensors[::2], self.tensors[1::2]

    def flat(self) -> list[Tensor]:
        """All of it in the order of flat vectors."""
        pieces = []
        for one, taps, bias in zip(self.images.filters, self.taps, self.biases, strict=True):
            by_tap = taps.view(-1, one.inputs, _TAPS, one.outputs) if len(taps) == 1 else taps.permute(1, 2, 0, 3)
            pieces += [by_tap.permute(0, 3, 2, 1).flatten(1), bias.flatten(1)]
        return pieces

    def outputs_for(self, x: Tensor) -> Tensor:
        """Features (K, m, d) of the windows x of samples, as `Images.arranged` has them; kept for `step`."""
        self.seen = []
        out = x
        for number, one in enumerate(self.images.filters):
            height, width = self.images.pixels[number]
            if number == 0:
                z = torch.baddbmm(self.biases[0], x, self.taps[0][0]).view(-1, height, width, one.outputs)
            else:
                x = _spread(out, self.clients)
                z = _convolve(x, self.taps[number], width, self.biases[number])
                z = _pixels(z, len(out) // self.clients, height, width).flatten(0, 1)
            out, places = functional.max_pool2d_with_indices(
                z.permute(0, 3, 1, 2), _HALVES, ceil_mode=one.ceil, return_indices=True
            )
            out = out.clamp_(min=0)
            self.seen.append((x, out, places))
        return out.flatten(1).view(self.clients, -1, out[0].numel())

    def step(self, gradient: Tensor, eta: float, decay: float) -> Tensor:
        """One gradient step, in place, from the gradient at the features; nothing lies in front of these."""
        gradient = gradient.reshape(self.seen[-1][1].shape)
        for number in range(len(self.seen) - 1, -1, -1):
            (x, pooled, places), taps = self.seen[number], self.taps[number]
            height, width = self.images.pixels[number]
            gradient = (gradient * (pooled > 0)).contiguous(memory_format=torch.channels_last)
            gradient = functional.max_unpool2d(gradient, places, _HALVES, output_size=[height, width])
            if number == 0:
                at_outputs = gradient.permute(0, 2, 3, 1).reshape(self.clients, -1, gradient.shape[1])
                offsets, count = [0], at_outputs.shape[1]
            else:
                spread = _spread(gradient, self.clients)
                offsets, count = _offsets(width), spread.shape[1] - _offsets(width)[-1]
                back = _convolve(spread, taps.flip(0).mT, width)
                images = len(gradient) // self.clients
                gradient = _pixels(back, images, height, width).flatten(0, 1).permute(0, 3, 1, 2)
                middle = offsets[_TAPS // 2]
                at_outputs = spread[:, middle : middle + count]
            for tap, offset in zip(taps, offsets, strict=True):
                tap.baddbmm_(x[:, offset : offset + count].mT, at_outputs, beta=decay, alpha=-eta)
            self.biases[number].mul_(decay).sub_(at_outputs.sum(1, keepdim=True), alpha=eta)
        self.seen = []
        return gradient


def _offsets(width: int) -> list[int]:
    """How far ahead every tap looks, in pixels of images laid out by `_spread`."""
    return [row * (width + 1) + column for row in range(3) for column in range(3)]


def _spread(images: Tensor, clients: int) -> Tensor:
    """Images (K m, c, h, w) as rows of pixels (K, pixels, c) with zeros between and around them."""
    _, channels, height, width = images.shape
    count = len(images) // clients
    pixels = (count * (height + 1) + 1) * (width + 1) + 2
    room = images.new_zeros(clients, pixels, channels)
    inner = _pixels(room[:, width + 2 :], count, height, width)
    inner.copy_(images.permute(0, 2, 3, 1).reshape(inner.shape))
    return room


def _pixels(rows: Tensor, images: int, height: int, width: int) -> Tensor:
    """The pixels (K, images, h, w, c) in rows (K, pixels, c), each image's rows one pixel apart, images one row."""
    row, channels = width + 1, rows.shape[2]
    strides = (rows.stride(0), (height + 1) * row * channels, row * channels, channels, 1)
    return rows.as_strided((len(rows), images, height, width, channels), strides)


def _convolve(spread: Tensor, taps: Tensor, width: int, bias: Tensor | None = None) -> Tensor:
    """Sums over the taps (K, pixels, outputs) for every pixel but the border; those between images are junk."""
    offsets = _offsets(width)
    count = spread.shape[1] - offsets[-1]
    first = spread[:, :count]
    z = torch.bmm(first, taps[0]) if bias is None else torch.baddbmm(bias, first, taps[0])
    for tap, offset in zip(taps[1:], offsets[1:], strict=True):
        z.baddbmm_(spread[:, offset : offset + count], tap)
    return z
