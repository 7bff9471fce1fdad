"""Groups, each of them a whole federation, and the servers above them that average their hubs' blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import Draw
from crosshatch.exchanges import ClientWeights, Number, Within
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.client_weights import counted_together
from crosshatch.protocol.what_is_known import check_decision
from crosshatch.testing.parties.agreed import Batch
from crosshatch.testing.parties.desk import Desk
from crosshatch.testing.parties.exchanges.party_federation import PartyFederation
from crosshatch.testing.parties.post import Post, Uses
from crosshatch.testing.parties.values_by_party import Blocks


@dataclass
class PartyServers:
    """The servers above some groups; `tiers[level][g]` is the member of that tier which group g belongs to.

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

    def begin_round(self, round: int) -> None:
        """No exchange was used yet, in any group."""
        self.uses.begin_round()
        for group in self.groups:
            group.begin_round(round)

    def average(
        self,
        blocks: tuple[Blocks, ...],
        batch: tuple[Batch, ...],
        *,
        weights: ClientWeights,
        within: Within,
        depth: int,
    ) -> tuple[Blocks, ...]:
        """In every group; within the federation the server has them all, and goes on with one average."""
        after = tuple(
            group.average(blocks[g], batch[g], weights=weights, within=within, depth=depth)
            for g, group in enumerate(self.groups)
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

    def average_groups(self, blocks: tuple[Blocks, ...], *, round: int, level: int) -> tuple[Blocks, ...]:
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

    def decide(self, value: Number, *, round: int, by: int) -> Number:
        """A hub of the first group to the server, which tells the same hub of every other one."""
        check_decision(value, by, len(self.silos))
        call = self.uses.call("decide", round)
        (said,) = self.post.carry("group-server up", call, torch.tensor([value], dtype=torch.float64))
        for _ in self.groups[1:]:
            (heard,) = self.post.carry("group-server down", call, said)
        return type(value)(heard.item())

    def model(self, blocks: Sequence[Blocks]) -> tuple[Tensor, ...]:
        """The groups' blocks weighted by their samples: what an onlooker makes of the hubs' blocks."""
        same = all(all(map(torch.equal, one.hubs, blocks[0].hubs)) for one in blocks)
        every = [one.hubs for one in blocks]
        return every[0] if same else _mean(every, [group.agreed.samples for group in self.groups])


def _mean(values: Sequence[tuple[Tensor, ...]], counts: Sequence[int]) -> tuple[Tensor, ...]:
    """Weighted by counts, silo by silo."""
    total = sum(counts)
    return tuple(
        torch.stack([one * (count / total) for one, count in zip(pieces, counts, strict=True)]).sum(0)
        for pieces in zip(*values, strict=True)
    )
