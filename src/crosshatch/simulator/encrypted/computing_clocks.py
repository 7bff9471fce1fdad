"""How late it would be if messages took no time: what is left of a run's simulated seconds are messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crosshatch.network import Seconds
from crosshatch.simulator.accounting.links import Links


@dataclass
class ComputingClocks:
    """A clock for each silo, beside those of the links."""

    links: Links
    computing: Seconds = field(init=False)  # (silos,)
    _seen: Seconds = field(init=False)  # the hubs' clocks after the last exchange

    def __post_init__(self) -> None:
        """All clocks begin at zero."""
        self.computing, self._seen = np.zeros((2, len(self.links.silos)))

    @property
    def seconds(self) -> float:
        """How long the run would have taken so far."""
        return float((self.computing + self.links.clocks.hubs - self._seen).max())

    def begin(self) -> None:
        """Before anything is sent: what the clocks show since the last exchange was local work."""
        self.computing += self.links.clocks.hubs - self._seen

    def end(self) -> None:
        """After the last message of an exchange."""
        self._seen = self.links.clocks.hubs.copy()

    def work(self, silo: int, seconds: float) -> None:
        """A silo computes for so long, on both clocks."""
        self.links.clocks.hubs[silo] += seconds
        self.computing[silo] += seconds

    def wait(self, silo: int, others: Sequence[int]) -> None:
        """A silo gets a message from others; on the links' clocks it waits in `send`."""
        self.computing[silo] = max(self.computing[silo], *self.computing[list(others)], -np.inf)

    def snapshot(self) -> Tensor:
        """The clocks, for a checkpoint."""
        return torch.as_tensor(np.stack([self.computing, self._seen]))

    def restore(self, clocks: Tensor) -> None:
        self.computing, self._seen = clocks.numpy().copy()
