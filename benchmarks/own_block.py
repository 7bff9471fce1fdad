"""A block as users write them, for `benchmarks.same_configs`: random in training, a part of it never changes."""

from __future__ import annotations

from torch import Tensor, nn


class Dropping(nn.Module):
    """A fixed random layer, dropout, and a trained one: (n, features) to (n, outputs)."""

    def __init__(self, input_shape: tuple[int, ...], outputs: int, width: int = 8) -> None:
        super().__init__()
        (features,) = input_shape
        self.fixed = nn.Linear(features, width).requires_grad_(False)
        self.dropout = nn.Dropout(0.2)
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """One row of outputs a sample."""
        out: Tensor = self.last(self.dropout(self.fixed(x).tanh()))
        return out
