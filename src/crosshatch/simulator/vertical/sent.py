"""What was sent of a batch so far, for exchanges in which receivers go on with what they saw before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.protocol.refusals import check_seen
from crosshatch.simulator.vertical.batch import Batch

Rows = tuple[Tensor, ...]
"""A silo's embeddings, part by part in the batch's order."""


@dataclass(frozen=True)
class Sent:
    """What arrived of an exchange: by sender its embeddings at everybody or silo `to`, and the head at `with_head`."""

    batch: Batch
    arrived: Mapping[int, Rows]
    to: int | None
    head: Tensor | None = None
    with_head: Sequence[int] = ()


@dataclass(frozen=True)
class SentSoFar:
    """All exchanges about the samples of the last one, in order."""

    silos: int
    exchanges: list[Sent] = field(default_factory=list)

    def seen_by(self, silo: int, own: Rows) -> dict[int, Rows]:
        """What a silo knows of all: its own embeddings, and of each other what it saw last."""
        seen: dict[int, Rows] = {}
        for sent in self.exchanges:
            seen |= sent.arrived if sent.to in (None, silo) else {}
        check_seen(seen, (j for j in range(self.silos) if j != silo))
        return seen | {silo: own}

    def head_at(self, silos: Sequence[int], batch: Batch) -> Tensor | None:
        """The head that these silos were sent last."""
        before = [sent for sent in reversed(self.exchanges) if sent.batch is batch]
        heads = [next(sent.head for sent in before if i in sent.with_head) for i in silos]
        if any(one is not heads[0] for one in heads):
            raise ConfigError(
                "share: silos were sent different heads since the batch was drawn: name its holder in senders"
            )
        return heads[0]
