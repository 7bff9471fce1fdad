"""The messages between silos one by one, with their values: for audits of what others get to see.

Who listens stands between a federation and the numbers of its exchanges, so that a round to which nobody listens takes
not one step more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast, final

import numpy as np
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, declared
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import About
from crosshatch.protocol.names import derivative_channels
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from crosshatch.simulator.vertical.sharing import Arrived, Frozen, Sharing
from crosshatch.task.task import Task

_NO_SAMPLES: Ids = np.empty(0, dtype=np.int64)


@final
@dataclass(frozen=True)
class Heard:
    """What one silo's hub sent to others in an exchange, about one part of a round's batch, as it arrived there.

    `exchange` is "share" (embeddings), "derivatives" (in a transfer task the components in their place), "gradients"
    (what a silo reads where derivatives travel encrypted: its own gradient of the batch, once the masks are off) or
    "head". Rounds count from 0, and `use` counts how many times the exchange was used before in the round. `ids` (n,)
    are numbers of training samples, `values` (n, e) their rows; a gradient is about all of them together and has values
    (p,); a head is about no samples and has values (h,).
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
    if federation.encrypted is not None and not federation.encrypted.scores_in_clear:
        raise ConfigError("there is nothing to record, all messages are encrypted: set privacy.encryption = 'none'")
    listened = ListenedSharing(federation.sharing, hear, encrypted=federation.encrypted is not None)
    federation.sharing = cast(Sharing, listened)
    if federation.encrypted is not None:
        federation.encrypted.hear = listened.gradients


@final
@dataclass(frozen=True)
class ListenedSharing:
    """The numbers of exchanges, told to a listener."""

    sharing: Sharing
    hear: Hear
    encrypted: bool  # derivatives are no message then: what silos read in their place is

    def share(
        self,
        embeddings: Embeddings,
        around: Embeddings,
        batch: Batch,
        known: Frozen,
        senders: Sequence[int],
        receivers: Sequence[int],
        *,
        to: int | None,
        use: int,
    ) -> tuple[Frozen, Arrived]:
        """Embeddings to all others or to one, the head with those of its holder."""
        frozen, arrived = self.sharing.share(embeddings, around, batch, known, senders, receivers, to=to, use=use)
        for j in senders:
            others = tuple(i for i in receivers if i != j)
            self._rows("share", j, others, batch, use, arrived[j])
            if j == self.task.head_holder and others:
                self._tell("head", j, others, batch, use, 0, frozen.heads[others[0]], _NO_SAMPLES)
        return frozen, arrived

    @property
    def task(self) -> Task:
        """What is trained."""
        return self.sharing.task

    def derivatives(
        self,
        embeddings: Embeddings,
        around: Embeddings,
        batch: Batch,
        known: Frozen,
        senders: Sequence[int],
        receivers: Sequence[int],
        *,
        holder: int,
        about: About,
        use: int,
    ) -> tuple[Frozen, Arrived]:
        """Embeddings to the label's holder, derivatives (in a transfer task components) back."""
        frozen, arrived = self.sharing.derivatives(
            embeddings, around, batch, known, senders, receivers, holder=holder, about=about, use=use
        )
        for j in senders:
            self._rows("share", j, (holder,), batch, use, arrived[j])
        asking = [j for j in receivers if j != holder]
        answered = range(len(batch.parts)) if about.answered is None else [about.answered]
        channels = derivative_channels(asking, each=about.each or len(receivers) == 1) if asking else {}
        for silos in () if self.encrypted else channels.values():
            found = {s: rows for s in answered if (rows := frozen.derivatives[silos[0]][s]) is not None}
            self._rows("derivatives", holder, tuple(silos), batch, use, found)
        return frozen, arrived

    def gradients(self, read: Mapping[int, Tensor], batch: Batch, holder: int, use: int) -> None:
        """What silos read where derivatives travel encrypted: one batch per round, to everybody its own."""
        for j, gradient in read.items():
            self._tell("gradients", holder, (j,), batch, use, 0, gradient, batch.parts[0])

    def _rows(
        self,
        exchange: str,
        sender: int,
        receivers: tuple[int, ...],
        batch: Batch,
        use: int,
        rows: Mapping[int, Tensor],
    ) -> None:
        for s, values in rows.items() if receivers else ():
            self._tell(exchange, sender, receivers, batch, use, s, values, batch.parts[s])

    def _tell(
        self,
        exchange: str,
        sender: int,
        receivers: tuple[int, ...],
        batch: Batch,
        use: int,
        part: int,
        values: Tensor,
        ids: Ids,
    ) -> None:
        copy = values.detach().clone()
        self.hear(Heard(batch.round, exchange, use, sender, receivers, part, ids, copy))
