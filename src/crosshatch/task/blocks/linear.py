"""The linear block: a silo's part of a linear, logistic or ridge regression."""

import math
import warnings

from torch import Tensor, nn


class Linear(nn.Module):
    """Samples (n, *input_shape), flattened, to outputs (n, outputs) by one matrix.

    `layers` is a plain chain, so that engines may stack the clients' copies and differentiate it by hand.
    """

    def __init__(self, input_shape: tuple[int, ...], outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        flatten = [nn.Flatten()] if len(input_shape) > 1 else []
        self.layers = nn.Sequential(*flatten, nn.Linear(math.prod(input_shape), outputs, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def without_features(outputs: int) -> nn.Module:
    """The block of a silo without features: no numbers to train, and zeros (n, outputs) of samples (n, 0).

    >>> import torch
    >>> without_features(2)(torch.zeros(3, 0)).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Initializing zero-element tensors", UserWarning)
        return Linear((0,), outputs, bias=False)
