"""The hook on which encryption hangs: what the engine asks of it where derivatives do not travel in clear."""

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from crosshatch.local.problem import LossInputs
from crosshatch.simulator.vertical.averaging import Solver
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.sharing import Asked, Frozen


class Encryption(Protocol):
    """Who carries out an exchange with the holder of the labels; `hear` is told the gradients that are read."""

    hear: Callable[[Mapping[int, Tensor], Batch, int, int], None] | None

    @property
    def scores_in_clear(self) -> bool: ...
    @property
    def solve(self) -> Solver: ...
    def exchange(self, frozen: Frozen, known: Mapping[int, LossInputs], batch: Batch, asked: Asked) -> Frozen: ...
