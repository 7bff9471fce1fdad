"""Blocks a user might write, small: shapes the built-in ones do not have."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Convolution(nn.Module):
    """A convolution along the columns (its 4-D weight lies differently in the flat vector), then a linear layer."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """`inputs` at least 2."""
        super().__init__()
        self.filters = nn.Conv2d(1, 2, (1, 2))
        self.last = nn.Linear(2 * (inputs - 1), outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs) to (n, outputs)."""
        return self.last(torch.tanh(self.filters(x[:, None, None, :])).flatten(1))  # type: ignore[no-any-return]


class Gated(nn.Module):
    """Bare parameters, no layers: `sigmoid(x A) * (x B)` with one matrix held sideways, and a common factor."""

    def __init__(self, inputs: int, outputs: int) -> None:
        """Start from small random matrices."""
        super().__init__()
        self.gate = nn.Parameter(0.5 * torch.randn(inputs, outputs))
        self.value = nn.Parameter(0.5 * torch.randn(outputs, inputs))
        self.scale = nn.Parameter(torch.tensor([1.5]))

    def forward(self, x: Tensor) -> Tensor:
        """(n, inputs) to (n, outputs)."""
        return self.scale * torch.sigmoid(x @ self.gate) * (x @ self.value.T)


def make_block(kind: str, inputs: int, outputs: int) -> nn.Module:
    """One of four kinds of block; all take (n, inputs)."""
    if kind == "linear":
        return nn.Linear(inputs, outputs, bias=inputs % 2 == 0)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(inputs, 3), nn.ReLU(), nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, outputs))
    return Convolution(inputs, outputs) if kind == "convolution" else Gated(inputs, outputs)


def make_head(kind: str, inputs: int, outputs: int) -> nn.Module:
    """A linear head, or one with a hidden layer."""
    if kind == "linear":
        return nn.Linear(inputs, outputs)
    return nn.Sequential(nn.Linear(inputs, 3), nn.Sigmoid(), nn.Linear(3, outputs, bias=False))
