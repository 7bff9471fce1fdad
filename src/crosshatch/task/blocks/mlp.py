"""The multilayer perceptron block."""

import math

from torch import Tensor, nn

from crosshatch.errors import ModelError


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
            chain += [nn.Linear(width, units, bias=bias), _activation(activation)]
            width = units
        self.layers = nn.Sequential(*chain, nn.Linear(width, outputs, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


def _activation(name: str) -> nn.Module:
    match name:
        case "relu":
            return nn.ReLU()
        case "tanh":
            return nn.Tanh()
        case "sigmoid":
            return nn.Sigmoid()
    raise ModelError(f"unknown activation {name!r} in model.activation: choose relu, tanh or sigmoid")
