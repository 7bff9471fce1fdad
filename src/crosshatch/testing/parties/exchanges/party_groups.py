"""Groups, each of them a whole federation, and the servers above them that average their hubs' blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import Draw
from crosshatch.exchanges import ClientWeights, Within
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.client_weights import counted_together
from crosshatch.testing.parties.agreed import Batch
from crosshatch.testing.parties.desk import Desk
from crosshatch.testing.parties.exchanges.party_federation import PartyFederation
from crosshatch.testing.parties.post import Post, Uses
from crosshatch.testing.parties.values_by_party import Blocks, Embeddings, Frozen

T = TypeVar("T")


@dataclass
class Groups:
    """Several federations; `tiers[level][g]` is the member of that horizontal tier which group g belongs to.

    Every member of a tier has a server of its own, with a desk in `_servers`.
    """

    groups: tuple[PartyFederation, ...]
    tiers: tuple[Ids, ...]
    post: Post
    uses: Uses = field(default_factory=Uses)
    _servers: dict[tuple[int, int], Desk] = field(default_factory=dict)

    @property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos of a group."""
        return self.groups[0].silos

    @property
    def labels_held(self) -> bool:
        """Whether one silo of a group alone knows the labels."""
        return self.groups[0].labels_held

    def begin_round(self) -> None:
        """No exchange was used yet, in any group."""
        for uses in (self.uses, *(group.uses for group in self.groups)):
            uses.begin_round()
        for group in self.groups:
            group.parties.begin_round()

    def _each(self, what: Callable[[PartyFederation, int], T]) -> tuple[T, ...]:
        return tuple(what(group, g) for g, group in enumerate(self.groups))

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> tuple[Batch, ...]:
        """`size` samples in every group."""
        return self._each(lambda group, _: group.draw_batch(size, round=round, parts=parts, first=first))

    def select(self, fraction: float, *, round: int) -> tuple[Batch, ...]:
        """A fraction of the clients of every group."""
        return self._each(lambda group, _: group.select(fraction, round=round))

    def broadcast(
        self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], *, within: Within = "silo", depth: int = 0
    ) -> tuple[Blocks, ...]:
        """In every group."""
        return self._each(lambda group, g: group.broadcast(blocks[g], batch[g], within=within, depth=depth))

    def average(
        self,
        blocks: tuple[Blocks, ...],
        batch: tuple[Batch, ...],
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> tuple[Blocks, ...]:
        """In every group; within the federation the server has them all, and goes on with one average."""
        after = self._each(
            lambda group, g: group.average(blocks[g], batch[g], weights=weights, within=within, depth=depth)
        )
        if within == "silo":
            return after
        means: list[Tensor] = []
        for j in self.silos:
            counted = [self._counted(g, j, batch[g], weights) for g in range(len(after))]
            means += _mean([(one.hubs[j],) for one in after], counted)
            if self._averages_moments:
                self._give_moments(j, range(len(self.groups)), [g.parties.moments_at(j) for g in self.groups], counted)
        return (Blocks(tuple(means)),) * len(self.groups)

    def _counted(self, group: int, silo: int, batch: Batch, weights: ClientWeights) -> int:
        """How much a silo's clients count together beside those of other groups."""
        agreed = self.groups[group].agreed
        at_work = np.array(agreed.at_work(silo, batch))
        return counted_together(agreed.owners[silo], agreed.clients[silo], at_work, weights)

    @property
    def _averages_moments(self) -> bool:
        return self.groups[0].agreed.averages_moments

    def _give_moments(self, silo: int, members: Sequence[int], given: Sequence[Tensor], counts: Sequence[int]) -> None:
        """A server's average of the moments of one silo's hubs goes back to them."""
        (mean,) = _mean([(one,) for one in given], counts)
        for g in members:
            self.groups[g].parties.take_moments(silo, mean)

    def average_groups(self, blocks: tuple[Blocks, ...], *, round: int, level: int = 0) -> tuple[Blocks, ...]:
        """Every hub sends to the server of its member of the tier, and the average weighted by samples comes back."""
        call = self.uses.call("average_groups", round)
        after = list(blocks)
        for member in np.unique(self.tiers[level]).tolist():
            mine = np.flatnonzero(self.tiers[level] == member).tolist()
            server = self._servers.setdefault((level, member), Desk())
            first = self.groups[mine[0]].agreed
            codec, hubs = first.codecs.get("average_groups"), {g: list(blocks[g].hubs) for g in mine}
            for j in self.silos:
                models = {g: self.groups[g].parties.hubs[j].model for g in mine}
                arrived, moments = [], []
                for g in mine:
                    desk, seed = self.groups[g].parties.hubs[j].desk, self.groups[g].agreed.seed
                    draw = Draw(seed, f"average_groups:{j} up {level}", (round, call.use, 0))
                    content = desk.encode_vector(f"up {level}", codec, models[g].sent(hubs[g][j]), draw)
                    along = [self.groups[g].parties.moments_at(j)] if self._averages_moments else []
                    message, *state = self.post.carry("group-server up", call, content, *along)
                    moments += state
                    size = models[g].sizes[0]
                    arrived.append((server.decode_vector(f"{g} {j}", codec, message, size, first.dtype, draw),))
                samples = [self.groups[g].agreed.samples for g in mine]
                (mean,) = _mean(arrived, samples)
                if moments:
                    self._give_moments(j, mine, moments, samples)
                draw = Draw(first.seed, f"average_groups:{j} down {level}", (round, call.use, 0))
                content = server.encode_vector(f"down {j}", codec, mean, draw)
                for g in mine:
                    along = [self.groups[g].parties.moments_at(j)] if self._averages_moments else []
                    message, *_ = self.post.carry("group-server down", call, content, *along)
                    desk, size = self.groups[g].parties.hubs[j].desk, models[g].sizes[0]
                    got = desk.decode_vector(f"down {level}", codec, message, size, first.dtype, draw)
                    hubs[g][j] = models[g].filled(got)
            for g in mine:
                after[g] = Blocks(tuple(hubs[g]))
        return tuple(after)

    def model(self, blocks: Sequence[Blocks]) -> tuple[Tensor, ...]:
        """The groups' blocks weighted by their samples: what an onlooker makes of the hubs' blocks."""
        same = all(all(map(torch.equal, one.hubs, blocks[0].hubs)) for one in blocks)
        every = [one.hubs for one in blocks]
        return every[0] if same else _mean(every, [group.agreed.samples for group in self.groups])

    def embed(
        self,
        blocks: tuple[Blocks, ...],
        batch: tuple[Batch, ...],
        *,
        only: int | None = None,
        known: tuple[Embeddings, ...] | None = None,
    ) -> tuple[Embeddings, ...]:
        """In every group."""
        return self._each(
            lambda group, g: group.embed(blocks[g], batch[g], only=only, known=None if known is None else known[g])
        )

    def share(
        self,
        embeddings: tuple[Embeddings, ...],
        batch: tuple[Batch, ...],
        *,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> tuple[Frozen, ...]:
        """Inside every group."""
        return self._each(lambda group, g: group.share(embeddings[g], batch[g], senders=senders, to=to))

    def share_derivatives(
        self,
        embeddings: tuple[Embeddings, ...],
        batch: tuple[Batch, ...],
        *,
        around: tuple[Embeddings, ...] | None = None,
        step: int = 0,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> tuple[Frozen, ...]:
        """With the label's holder inside every group."""
        return self._each(
            lambda group, g: group.share_derivatives(
                embeddings[g], batch[g], around=None if around is None else around[g], step=step, senders=senders, to=to
            )
        )

    def descend(
        self,
        blocks: tuple[Blocks, ...],
        batch: tuple[Batch, ...],
        frozen: tuple[Frozen, ...],
        *,
        steps: int,
        step_size: float,
        first: int = 0,
        proximal: float = 0.0,
        only: int | None = None,
        anticipation: float = 1.0,
        continued: bool = False,
        earlier: Sequence[tuple[tuple[Batch, ...], tuple[Frozen, ...]]] = (),
    ) -> tuple[Blocks, ...]:
        """In every group."""
        return self._each(
            lambda group, g: group.descend(
                blocks[g],
                batch[g],
                frozen[g],
                steps=steps,
                step_size=step_size,
                first=first,
                proximal=proximal,
                only=only,
                anticipation=anticipation,
                continued=continued,
                earlier=[(samples[g], known[g]) for samples, known in earlier],
            )
        )


def _mean(values: Sequence[tuple[Tensor, ...]], counts: Sequence[int]) -> tuple[Tensor, ...]:
    """Weighted by counts, silo by silo."""
    total = sum(counts)
    return tuple(
        torch.stack([one * (count / total) for one, count in zip(pieces, counts, strict=True)]).sum(0)
        for pieces in zip(*values, strict=True)
    )
