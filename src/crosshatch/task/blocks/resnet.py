"""ResNet18 for small images, such as 32 x 32 pixels and parts of them."""

import math

import torch
from torch import Tensor, nn


class ResNet18(nn.Module):
    """Image parts (n, c, h, w) to outputs (n, outputs) by eight residual units in four stages.

    As usual for small images the stem is one 3x3 convolution without pooling; widths double and sizes halve from stage
    to stage, and the mean over the remaining pixels reaches the output layer.

    GroupNorm is the default, not BatchNorm, because BatchNorm's running statistics are state of the client that no
    gradient step moves: averaging the clients' parameters leaves them behind or mixes means over different shards, and
    embeddings frozen for a round would have been computed with statistics that the local steps have since changed. It
    also makes a sample's embedding depend on its neighbours in the batch, so that a client with few samples in a round
    computes something else than the whole batch would. GroupNorm looks at one sample alone and has none of this.
    `norm="batch"` builds the classic network for central comparisons; a federated task refuses it.
    """

    def __init__(
        self, input_shape: tuple[int, int, int], outputs: int, *, channels: int = 64, norm: str = "group"
    ) -> None:
        super().__init__()
        stages = []
        before = channels
        for stage in range(4):
            after = channels * 2**stage
            stages += [_Residual(before, after, 1 if stage == 0 else 2, norm), _Residual(after, after, 1, norm)]
            before = after
        self.stem = nn.Sequential(_convolution(input_shape[0], channels, 1), _norm(norm, channels), nn.ReLU())
        self.stages = nn.Sequential(*stages)
        self.output = nn.Linear(before, outputs)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.output(self.stages(self.stem(x)).mean(dim=(2, 3)))
        return out


class _Residual(nn.Module):
    """Two 3x3 convolutions with norms, added to the input, or to its 1x1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int, norm: str) -> None:
        super().__init__()
        self.path = nn.Sequential(
            _convolution(before, after, stride),
            _norm(norm, after),
            nn.ReLU(),
            _convolution(after, after, 1),
            _norm(norm, after),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride=stride, bias=False), _norm(norm, after))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


def _convolution(before: int, after: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)  # the norm behind it has the bias


def _norm(norm: str, channels: int) -> nn.Module:
    if norm == "batch":
        return nn.BatchNorm2d(channels)
    return nn.GroupNorm(math.gcd(32, channels), channels)  # 32 groups, or what divides an unusual width
