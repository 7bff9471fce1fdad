"""The two-convolution network of the FedBCD and TDCD image experiments."""

import torch
from torch import Tensor, nn


class CNN(nn.Module):
    """Image parts (n, c, h, w) of any size to outputs (n, outputs).

    Two 3x3 convolutions with `channels` filters, each followed by ReLU and 2x2 max-pooling, then a layer of `dense`
    units and the outputs. The papers give the layers, not the borders: convolutions keep the size here and pooling
    rounds up, so even a part one pixel wide passes; ceil(h / 4) x ceil(w / 4) pixels per filter reach the dense units.
    """

    def __init__(
        self, input_shape: tuple[int, int, int], outputs: int, *, channels: int = 64, dense: int = 256
    ) -> None:
        super().__init__()
        inputs, height, width = input_shape
        pixels = -(-height // 4) * -(-width // 4)
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True),
            nn.Flatten(),
            nn.Linear(channels * pixels, dense),
            nn.ReLU(),
            nn.Linear(dense, outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        # With the channels of a pixel side by side convolutions take two thirds of the time, without gradients half.
        # A single channel counts as laid out either way, and only the strides tell torch which is meant.
        _, c, h, w = x.shape
        beside = x.contiguous(memory_format=torch.channels_last).as_strided(x.shape, (c * h * w, 1, c * w, c))
        out: Tensor = self.layers(beside)
        return out
