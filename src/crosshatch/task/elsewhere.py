"""What stands for a block or a head that is with another party."""

from collections.abc import Mapping
from typing import NoReturn

from torch import Tensor, nn

from crosshatch.errors import ModelError


class Elsewhere(nn.Module):
    """A module of which only the number of outputs per sample is known here.

    It computes nothing, and has no parameters but those that it `keeps` for others, as a hub does.

    >>> sum(parameter.numel() for parameter in Elsewhere(4).parameters())
    0
    """

    def __init__(self, width: int, keeps: Mapping[str, nn.Parameter] | None = None) -> None:
        super().__init__()
        if width < 0:
            raise ModelError(f"embeddings of width {width}: a silo has some numbers per sample, or none, correct it")
        self.width = width
        for name, parameter in (keeps or {}).items():
            self.register_parameter(name, parameter)

    def forward(self, x: Tensor) -> NoReturn:  # noqa: ARG002 - a module's call
        raise ModelError(
            f"a module with {self.width} outputs is with another party, which alone computes with it: take the outputs "
            "from there, or give the module itself"
        )
