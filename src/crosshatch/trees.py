"""A module's parameters as one flat vector, and back: blocks travel, are averaged and are stored in this form.

Convolution weights (4-D) lie channels-last in the vector, so that a view of it is channels-last too: torch's pooling
and convolution are much faster on that layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a module stands in its flat vector.

    >>> layout = Layout.of(nn.Linear(3, 2))
    >>> layout.size, layout.names
    (8, ('weight', 'bias'))
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, module: nn.Module) -> Layout:
        """The layout of `module`, parameters in the order torch lists them."""
        named = list(module.named_parameters())
        return cls(tuple(name for name, _ in named), tuple(tuple(p.shape) for _, p in named))

    @cached_property
    def size(self) -> int:
        """How many numbers the module has."""
        return sum(prod(shape) for shape in self.shapes)

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Each parameter as a view of `flat` (..., size): shapes (..., *shape)."""
        pieces = torch.split(flat, [prod(shape) for shape in self.shapes], dim=-1)
        return {name: _view(piece, shape) for name, piece, shape in zip(self.names, pieces, self.shapes, strict=True)}


def _view(piece: Tensor, shape: tuple[int, ...]) -> Tensor:
    leading = piece.shape[:-1]
    if len(shape) != 4:
        return piece.view((*leading, *shape))
    out, channels, height, width = shape
    return piece.view(*leading, out, height, width, channels).movedim(-1, -3)


def flatten(module: nn.Module) -> Tensor:
    """The module's parameters as one new vector, in the layout's order.

    >>> convolution = nn.Conv2d(2, 3, 3)
    >>> views = Layout.of(convolution).views(flatten(convolution))
    >>> torch.equal(views["weight"], convolution.weight)
    True
    """
    layout = Layout.of(module)
    parameters = list(module.parameters())
    like = parameters[0] if parameters else torch.zeros(0)
    flat = torch.empty(layout.size, dtype=like.dtype, device=like.device)
    with torch.no_grad():
        for view, parameter in zip(layout.views(flat).values(), parameters, strict=True):
            view.copy_(parameter)
    return flat


def load(module: nn.Module, flat: Tensor) -> None:
    """Copy a flat vector into the module's parameters."""
    with torch.no_grad():
        for name, piece in Layout.of(module).views(flat).items():
            module.get_parameter(name).copy_(piece)
