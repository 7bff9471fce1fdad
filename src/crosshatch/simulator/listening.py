"""The messages between silos one by one, with their values: for audits of what others get to see.

Who listens stands between the algorithm's text and the federation, so that a round to which nobody listens takes not
one step more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

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
from crosshatch.simulator.vertical.groups import GroupedFederation
from crosshatch.simulator.vertical.sharing import Frozen

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


def listen_to(
    federation: SimulatedFederation | GroupedFederation, algorithm: Algorithm, hear: Hear
) -> ListenedFederation:
    """The federation with a listener; a ConfigError where silos send each other nothing, or do so in groups."""
    if isinstance(federation, GroupedFederation):
        raise ConfigError("messages are recorded of one federation, this one is in groups: set federation.groups = 1")
    silent = declared(algorithm).central or algorithm.topology.vertical is None or len(federation.silos) == 1
    if silent:
        raise ConfigError(
            f"there is nothing to record, silos send each other no messages with {type(algorithm).__name__} on "
            f"{len(federation.silos)} silos: choose another algorithm.name, and at least two silos"
        )
    if federation.encrypted is not None and not federation.encrypted.scores_in_clear:
        raise ConfigError("there is nothing to record, all messages are encrypted: set privacy.encryption = 'none'")
    return ListenedFederation(federation, hear)


@final
class ListenedFederation:
    """A federation that tells of every message between its silos; whatever else is asked, the federation answers."""

    def __init__(self, federation: SimulatedFederation, hear: Hear) -> None:
        self._federation, self._hear = federation, hear

    def __getattr__(self, name: str) -> Any:
        return getattr(self._federation, name)

    def share(
        self, embeddings: Embeddings, batch: Batch, *, senders: Sequence[int] | None = None, to: int | None = None
    ) -> Frozen:
        """Embeddings to all others or to one, the head with those of its holder."""
        federation = self._federation
        frozen = federation.share(embeddings, batch, senders=senders, to=to)
        receivers = federation.silos if to is None else [to]
        for j in federation.silos if senders is None else sorted(set(senders)):
            others = tuple(i for i in receivers if i != j)
            self._rows("share", j, others, batch, range(len(batch.parts)), _sent(embeddings, j))
            if j == federation.task.head_holder and others and frozen.head is not None:
                self._tell("head", j, others, batch, 0, frozen.head, _NO_SAMPLES)
        return frozen

    def share_derivatives(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        around: Embeddings | None = None,
        step: int = 0,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> Frozen:
        """Embeddings to the label's holder, derivatives back."""
        federation = self._federation
        frozen = federation.share_derivatives(embeddings, batch, around=around, step=step, senders=senders, to=to)
        about = About.of(len(batch.parts), step, inner=around is not None, head=embeddings.head is not None)
        every = range(len(batch.parts))
        holder = federation.data.label_holder
        for j in federation.silos if senders is None else senders:
            if j != holder:
                asked = every if about.asked is None else [about.asked]
                self._rows("share", j, (holder,), batch, asked, _sent(embeddings, j))
        asking = [j for j in (federation.silos if to is None else [to]) if j != holder]
        answered = every if about.answered is None else [about.answered]
        known = frozen.known(asking)
        for j in asking:
            read = known[j][0].gradient
            if read is not None:  # one batch per round, and to everybody a gradient of its own
                self._tell("gradients", holder, (j,), batch, 0, read, batch.parts[0])
        for silos in derivative_channels(asking, each=about.each or to is not None).values() if asking else ():
            told = {s: known[silos[0]][s] for s in answered}
            # In a transfer task components come in the derivatives' place.
            transferred = federation.task.transfer is not None
            found = {s: one.rest if transferred else one.derivative for s, one in told.items()}
            drawn = {s: batch.as_drawn(silos[:1], s, [one])[0] for s, one in found.items() if one is not None}
            self._rows("derivatives", holder, tuple(silos), batch, drawn, drawn)
        return frozen

    def _rows(
        self,
        exchange: str,
        sender: int,
        receivers: tuple[int, ...],
        batch: Batch,
        parts: Iterable[int],
        values: Sequence[Tensor] | dict[int, Tensor],
    ) -> None:
        for s in parts if receivers else ():
            self._tell(exchange, sender, receivers, batch, s, values[s], batch.parts[s])

    def _tell(
        self,
        exchange: str,
        sender: int,
        receivers: tuple[int, ...],
        batch: Batch,
        part: int,
        values: Tensor,
        ids: Ids,
    ) -> None:
        counted = {"head": "share", "gradients": "derivatives"}.get(exchange, exchange)
        use = self._federation.uses[counted] - 1
        copy = values.detach().clone()
        self._hear(Heard(batch.round, exchange, use, sender, receivers, part, ids, copy))


def _sent(embeddings: Embeddings, silo: int) -> tuple[Tensor, ...]:
    """A silo's embeddings as others see them: a codec may stand in between."""
    return embeddings.seen.get(silo, embeddings.values[silo])
