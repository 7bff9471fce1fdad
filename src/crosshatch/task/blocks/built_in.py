"""The blocks that come with the package: linear, MLP, CNN, ResNet18 for small images, LSTM for time series."""

import math
import warnings

import torch
from torch import Tensor, nn

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}


class Linear(nn.Module):
    """Samples (n, *input_shape), flattened, to outputs (n, outputs) by one matrix: a part of a linear regression.

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


class MLP(nn.Module):
    """Samples (n, *input_shape), flattened, through hidden layers to outputs (n, outputs).

    `layers` is a plain chain of Flatten, Linear and the activation, so that engines may stack the clients' copies and
    differentiate it by hand.
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        outputs: int,
        *,
        hidden: tuple[int, ...] = (64,),
        activation: str = "relu",
        bias: bool = True,
    ) -> None:
        super().__init__()
        chain: list[nn.Module] = [nn.Flatten()] if len(input_shape) > 1 else []
        width = math.prod(input_shape)
        for units in hidden:
            chain += [nn.Linear(width, units, bias=bias), _ACTIVATIONS[activation]()]
            width = units
        self.layers = nn.Sequential(*chain, nn.Linear(width, outputs, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


class CNN(nn.Module):
    """Image parts (n, c, h, w) of any size to outputs (n, outputs).

    That of the FedBCD and TDCD image experiments: two 3x3 convolutions with `channels` filters, each followed by ReLU
    and 2x2 max-pooling, then a layer of `dense` units and the outputs. The papers give the layers, not the borders:
    convolutions keep the size here and pooling rounds up, so even a part one pixel wide passes; ceil(h / 4) x
    ceil(w / 4) pixels per filter reach the dense units.
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
        out: Tensor = self.layers(x)
        return out


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


class LSTM(nn.Module):
    """Sequences (n, t, d) through one LSTM layer; its last hidden state, through a linear layer, is (n, outputs).

    Table rows (n, t * d) whose columns are points in time, t of them with d numbers each, are folded into sequences.
    """

    def __init__(self, input_shape: tuple[int, int], outputs: int, *, hidden: int = 16) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.lstm = nn.LSTM(input_shape[1], hidden, batch_first=True)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(x.view(-1, *self.input_shape))
        out: Tensor = self.output(states[:, -1])
        return out
