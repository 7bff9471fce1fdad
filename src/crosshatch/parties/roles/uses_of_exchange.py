"""One use of `exchange`, as every party finds it without a message: who sends, who gets to know something, of what."""

from collections.abc import Sequence
from dataclasses import dataclass

from crosshatch.parties.holdings.agreed import Batch
from crosshatch.parties.holdings.values import Embeddings
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import derivative_channels


@dataclass(frozen=True)
class SharedUse:
    """Labels shared: every sender's embeddings `sent` go to all receivers, or to silo `to` alone."""

    embeddings: Embeddings
    sent: Embeddings
    batch: Batch
    senders: Sequence[int]
    receivers: Sequence[int]
    to: int | None
    call: Call


@dataclass(frozen=True)
class HeldUse:
    """Labels held by one silo: it gets embeddings, and answers the receivers, each around the others' in `around`."""

    embeddings: Embeddings
    around: Embeddings
    batch: Batch
    holder: int
    senders: Sequence[int]
    receivers: Sequence[int]
    about: About
    up: Call
    down: Call

    @property
    def asking(self) -> list[int]:
        return [j for j in self.receivers if j != self.holder]

    @property
    def channels(self) -> dict[str, Sequence[int]]:
        """The holder's answers by channel, with the silos each of them serves."""
        asking = self.asking
        return derivative_channels(asking, each=self.about.one_per_silo or len(self.receivers) == 1) if asking else {}

    @property
    def drawn(self) -> Call:
        """Names a codec's draws: both ways are counted by how often the way up was used."""
        return Call("derivatives", self.down.round, self.up.use)
