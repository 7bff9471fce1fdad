"""The messages between silos one by one, with their values: for audits of what others get to see.

Who listens is told by the numbers of exchanges (`vertical/sharing.py`) what arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, final

import numpy as np
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, declared
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from crosshatch.simulator.vertical.sharing import Arrived, Heads, Rows

_NO_SAMPLES: Ids = np.empty(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class Heard:
    """What one silo's hub sent to others in an exchange, about one part of a round's batch, as it arrived there.

    `exchange` is "share" (embeddings), "derivatives" (in a transfer task the components in their place), "gradients"
    (what a silo reads where derivatives travel encrypted: its own gradient of the batch, once the masks are off; in a
    transfer task in every local step, with the block it is of) or "head". Rounds count from 0, and `use` counts how
    many times the exchange was used before in the round. `ids` (n,) are numbers of training samples, `values` (n, e)
    their rows; a gradient is about all of them together and has values (p,), or (2, p) with the block; a head is about
    no samples and has values (h,).
    """

    round: int
    exchange: str
    use: int
    sender: int
    receivers: tuple[int, ...]
    part: int
    ids: Ids
    values: Tensor

    @property
    def place(self) -> tuple[int, str, int, int, tuple[int, ...], int]:
        """Everything but what it says."""
        return self.round, self.exchange, self.use, self.sender, self.receivers, self.part


Hear: TypeAlias = Callable[[Heard], None]


def listen_to(federation: SimulatedFederation | SimulatedServer, algorithm: Algorithm, hear: Hear) -> None:
    """Have a federation tell of its messages; a ConfigError where silos send each other nothing, or do so in groups."""
    if isinstance(federation, SimulatedServer):
        raise ConfigError("messages are recorded of one federation, this one is in groups: set federation.groups = 1")
    silent = declared(algorithm).central or algorithm.topology.vertical is None or len(federation.silos) == 1
    if silent:
        raise ConfigError(
            f"there is nothing to record, silos send each other no messages with {type(algorithm).__name__} on "
            f"{len(federation.silos)} silos: choose another algorithm.name, and at least two silos"
        )
    listening = Listening(hear, federation.task.head_holder, encrypted=federation.encrypted is not None)
    if federation.encrypted is not None:
        federation.encrypted.hear = listening.gradients
    if federation.encrypted is None or federation.encrypted.scores_in_clear:
        federation.sharing = replace(federation.sharing, listener=listening)


@final
@dataclass(frozen=True)
class Listening:
    """Tells a listener of what arrives, message by message."""

    hear: Hear
    head_holder: int | None
    encrypted: bool  # derivatives are no message then: what silos read in their place is

    def share(self, batch: Batch, use: int, arrived: Arrived, receivers: Sequence[int], heads: Heads) -> None:
        """Embeddings to all others or to one, the head with those of its holder."""
        for j, rows in arrived.items():
            others = tuple(i for i in receivers if i != j)
            self._tell("share", j, others, batch, use, rows)
            if j == self.head_holder and others:
                self._tell("head", j, others, batch, use, {0: heads[others[0]]})

    def derivatives(
        self, batch: Batch, use: int, arrived: Arrived, holder: int, told: Mapping[tuple[int, ...], Rows]
    ) -> None:
        """Embeddings to the label's holder, derivatives (in a transfer task components) back."""
        for j, rows in arrived.items():
            self._tell("share", j, (holder,), batch, use, rows)
        for silos, rows in () if self.encrypted else told.items():
            self._tell("derivatives", holder, silos, batch, use, rows)

    def gradients(self, read: Mapping[int, Tensor], batch: Batch, holder: int, use: int) -> None:
        """What silos read where derivatives travel encrypted: one batch per round, to everybody its own."""
        for j, gradient in read.items():
            self._tell("gradients", holder, (j,), batch, use, {0: gradient})

    def _tell(
        self, exchange: str, sender: int, receivers: tuple[int, ...], batch: Batch, use: int, by_part: Rows
    ) -> None:
        for part, values in by_part.items() if receivers else ():
            ids = _NO_SAMPLES if exchange == "head" else batch.parts[part]
            self.hear(Heard(batch.round, exchange, use, sender, receivers, part, ids, values.detach().clone()))
