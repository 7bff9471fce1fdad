"""What every party of a federation knows without a message, and who holds which sample, which not everybody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from crosshatch.channels import Channels
from crosshatch.codecs import AnyCodec
from crosshatch.protocol.batches import BatchSource, Ids, draw
from crosshatch.protocol.client_weights import counted_together, everyones_weights
from crosshatch.protocol.names import ClientWeights


@dataclass(frozen=True)
class Batch:
    """A round's samples: `parts[s]` are the ids of local step s (mod the number of parts).

    A server that averages clients itself has those of each group.
    """

    round: int
    parts: tuple[Ids, ...]
    of_groups: tuple[Batch, ...] = ()

    def ids(self, part: int | None = None) -> Ids:
        """The rows an exchange is about: the ids of a part, or (None) of all parts one after the other."""
        if part is not None:
            return self.parts[part]
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


@dataclass(frozen=True)
class Beforehand:
    """What all had settled before the first round: it follows from all blocks and data together, which nobody has.

    `widths` are those of all silos' embeddings; with `draws` some block draws random numbers.

    Of agents: whether all blocks' outputs are `linear` in their parameters, whether there are outputs at the start that
    the server `gathers`, and the `steps` of weights, duals and multipliers.
    """

    widths: tuple[int, ...]
    draws: bool = False
    linear: bool = True
    gathers: bool = False
    steps: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Agreed:
    """No features, no labels, no weights, no samples: only what the parties settled beforehand."""

    samples: int
    clients: tuple[int, ...]  # by silo, how many
    widths: tuple[int, ...]  # of the silos' embeddings
    one_party: frozenset[int]  # silos whose hub and client are one: there is no link between them
    label_holder: int | None  # None: every client has the labels of its samples
    head_holder: int | None  # None: embeddings are added up
    source: BatchSource
    codecs: Mapping[str, AnyCodec]
    seed: int  # of the codecs' draws
    dtype: torch.dtype
    in_order_of_ids: bool = False  # a client's rows are in the order of their ids, whatever order they were drawn in
    branches: tuple[int, ...] = ()  # how a silo's clients are divided among branches below its hub
    averages_moments: bool = False  # the optimiser's states travel with the blocks, and are averaged as they are
    hubs_together: bool = False  # the hubs of a group are one party: a hospital and its devices, in pairs
    transfers: bool = False  # two silos are tied together by a class mean

    @property
    def silos(self) -> range:
        return range(len(self.clients))

    def others(self, silo: int) -> Sequence[int]:
        return [j for j in self.silos if j != silo]

    def is_alone(self, silo: int) -> bool:
        """Whether a silo is one party, so that its block travels nowhere and its moments are nobody else's."""
        return silo in self.one_party and not self.hubs_together

    @property
    def all_alone(self) -> bool:
        """Whether every silo is one party, so that there is nobody to average with."""
        return len(self.one_party) == len(self.silos) and not self.hubs_together

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """The round's samples from the shared seed; all of them are one part, however many were asked for."""
        if size is None:
            return Batch(round, (np.arange(self.samples),))
        drawn = draw(self.source, samples=self.samples, size=size, round=round, parts=parts, first=first)
        return Batch(round, tuple(np.sort(part) for part in drawn) if self.in_order_of_ids else drawn)

    def channels(self, silo: int) -> Channels:
        """A party's own ends; the blocks of a silo that is one party travel nowhere."""
        stay = ("broadcast", "average") if self.is_alone(silo) else ()
        return Channels({name: codec for name, codec in self.codecs.items() if name not in stay}, self.seed)

    def due(self, exchange: str, *shape: int) -> tuple[int, ...] | None:
        """What an exchange brings where no codec writes it; None: a codec does."""
        return None if exchange in self.codecs else shape

    def width(self, exchange: str, silo: int) -> int:
        """How many numbers per row an exchange carries of a silo; in a transfer task the holder answers with two."""
        return self.widths[silo] * (2 if exchange == "derivatives" and self.transfers else 1)


@dataclass(frozen=True)
class Roster:
    """Which of a silo's clients holds each sample."""

    owners: Ids
    clients: int

    def at_work(self, batch: Batch, part: int | None = None) -> list[int]:
        """The clients that hold samples of the batch (or of one part), in order."""
        present: list[int] = np.unique(self.owners[batch.ids(part)]).tolist()
        return present

    def rows(self, client: int, batch: Batch, part: int | None = None) -> Ids:
        """Where a client's samples stand among those of the batch (or of one part)."""
        return np.flatnonzero(self.owners[batch.ids(part)] == client)

    def weights(self, at_work: Sequence[int], by: ClientWeights) -> list[float]:
        """How much each client counts in an average, those not at work included."""
        found: list[float] = everyones_weights(self.owners, self.clients, np.array(at_work), by).tolist()
        return found

    def counted(self, at_work: Sequence[int], by: ClientWeights) -> int:
        """How much all of them count together, beside the clients of other groups."""
        return counted_together(self.owners, self.clients, np.array(at_work), by)


@dataclass(frozen=True)
class Selection:
    """Which client of the silo with the most holds each of these samples: all that a party must know to select."""

    clients: int
    ids: Ids
    owners: Ids

    def of(self, source: BatchSource, fraction: float, round: int) -> Batch:
        """Those of the samples that the clients hold which are drawn."""
        return Batch(round, (self.ids[np.isin(self.owners, source.clients(round, fraction, self.clients))],))
