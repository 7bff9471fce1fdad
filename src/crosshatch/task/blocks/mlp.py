"""The multilayer perceptron block."""

import math

from torch import Tensor, nn

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}


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
