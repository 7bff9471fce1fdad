"""What every party of a federation knows without a message: names, who holds which sample, shapes, seeds, codecs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from crosshatch.codecs import AnyCodec
from crosshatch.protocol.batches import BatchSource, Ids, draw


@dataclass(frozen=True)
class Batch:
    """A round's samples: `parts[s]` are the ids of local step s (mod the number of parts)."""

    round: int
    parts: tuple[Ids, ...]

    def ids(self, part: int | None = None) -> Ids:
        """The rows an exchange is about: the ids of a part, or (None) of all parts one after the other."""
        return np.concatenate(self.parts) if part is None else self.parts[part]


@dataclass(frozen=True)
class Agreed:
    """No features, no labels, no weights: only what the parties settled beforehand."""

    owners: tuple[Ids, ...]  # by silo, which of its clients holds each sample
    clients: tuple[int, ...]  # by silo, how many
    widths: tuple[int, ...]  # of the silos' embeddings
    one_party: frozenset[int]  # silos whose hub and client are one: there is no link between them
    label_holder: int | None  # None: every client has the labels of its samples
    head_holder: int | None  # None: embeddings are added up
    source: BatchSource
    codecs: Mapping[str, AnyCodec]
    seed: int  # of the codecs' draws
    dtype: torch.dtype
    by_number: bool = False  # a client's rows are in the order of their ids, whatever order they were drawn in
    branches: tuple[int, ...] = ()  # how a silo's clients are divided among branches below its hub
    averages_moments: bool = False  # the optimiser's states travel with the blocks, and are averaged as they are
    hubs_together: bool = False  # the hubs of a group are one party: a hospital and its devices, in pairs

    @property
    def silos(self) -> range:
        """Numbers of the silos."""
        return range(len(self.owners))

    @property
    def samples(self) -> int:
        """How many there are."""
        return len(self.owners[0])

    def draw_batch(self, size: int | None, *, round: int, parts: int, first: int) -> Batch:
        """The round's samples from the shared seed; all of them are one part, however many were asked for."""
        if size is None:
            return Batch(round, (np.arange(self.samples),))
        drawn = draw(self.source, samples=self.samples, size=size, round=round, parts=parts, first=first)
        return Batch(round, tuple(np.sort(part) for part in drawn) if self.by_number else drawn)

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by some clients of the silo with the most."""
        most = max(self.silos, key=self.clients.__getitem__)
        if self.clients[most] == 1 or fraction >= 1:
            return self.draw_batch(None, round=round, parts=1, first=0)
        chosen = self.source.clients(round, fraction, self.clients[most])
        return Batch(round, (np.flatnonzero(np.isin(self.owners[most], chosen)),))

    def at_work(self, silo: int, batch: Batch, part: int | None = None) -> list[int]:
        """The clients of a silo that hold samples of the batch (or of one part), in order."""
        present: list[int] = np.unique(self.owners[silo][batch.ids(part)]).tolist()
        return present

    def rows(self, silo: int, client: int, batch: Batch, part: int | None = None) -> Ids:
        """Where a client's samples stand among those of the batch (or of one part)."""
        return np.flatnonzero(self.owners[silo][batch.ids(part)] == client)

    def others(self, silo: int) -> Sequence[int]:
        """All silos but one."""
        return [j for j in self.silos if j != silo]

    def codec(self, exchange: str, silo: int | None = None) -> AnyCodec | None:
        """The codec of an exchange; None for the blocks of a silo that is one party, since they travel nowhere."""
        inside = silo is not None and silo in self.one_party and not self.hubs_together
        return None if inside else self.codecs.get(exchange)
