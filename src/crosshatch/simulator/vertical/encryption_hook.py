"""The hook on which encryption hangs: what the engine asks of it where derivatives do not travel in clear."""

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm
from crosshatch.local.problem import LossInputs
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.vertical.averaging import Solver
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.sharing import Asked, Frozen
from crosshatch.task.task import Task


class Encryption(Protocol):
    """Who carries out an exchange with the holder of the labels; `hear` is told the gradients that are read."""

    hear: Callable[[Mapping[int, Tensor], Batch, int, int], None] | None

    @property
    def scores_in_clear(self) -> bool: ...
    @property
    def solve(self) -> Solver: ...
    def exchange(self, frozen: Frozen, known: Mapping[int, LossInputs], batch: Batch, asked: Asked) -> Frozen: ...


MakeEncryption = Callable[[FederatedData, Task, Algorithm, Mapping[str, AnyCodec], Links, int], Encryption]
"""Puts it together for a federation, with so many threads; refuses where it cannot be."""


class Privacy(Protocol):
    """What a simulator is given to encrypt, for example `PrivacySettings`."""

    @property
    def encrypting(self) -> MakeEncryption | None: ...
