"""What groups do together: a server averages them, and small models of all groups are computed in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights, Grouped, Number, Within
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.client_weights import counted_together
from crosshatch.protocol.message_contents import DECISION, Call
from crosshatch.protocol.names import server_channel
from crosshatch.protocol.what_is_known import check_decision
from crosshatch.simulator.vertical.averaging import averaged
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.optimising import average_hubs
from crosshatch.simulator.vertical.sharing import Frozen

GroupBlocks = tuple[Blocks, ...]


@dataclass(frozen=True, eq=False)
class SimulatedServer(Grouped[Blocks, Batch, Embeddings, Frozen]):
    """The servers above some groups; `tiers[level][g]` is the member of that tier which group g belongs to."""

    groups: tuple[SimulatedFederation, ...]
    samples: Ids  # of each group
    tiers: tuple[Ids, ...]

    def average(
        self, blocks: GroupBlocks, batch: tuple[Batch, ...], *, weights: ClientWeights = "equal",
        within: Within = "silo", depth: int = 0,
    ) -> GroupBlocks:  # fmt: skip
        """Clients to hub in every group, the local steps of all groups computed in one go."""
        asked = [
            group.weigh(blocks[g], batch[g], weights=weights, within=within, depth=depth)
            for g, group in enumerate(self.groups)
        ]
        together = iter(averaged([one for one in asked if not isinstance(one, Blocks)], self.groups[0].solver))
        done = tuple(one if isinstance(one, Blocks) else next(together) for one in asked)
        if within == "silo":
            return done
        every = range(len(self.groups))
        self._meet(every)
        silos = self.groups[0].silos
        counted = [
            [
                counted_together(group.data.silos[j].owners, group.data.silos[j].clients, batch[g].clients[j], weights)
                for g, group in enumerate(self.groups)
            ]
            for j in silos
        ]
        return (self._mean(done, every, counted),) * len(self.groups)

    def average_groups(self, blocks: GroupBlocks, *, round: int, level: int = 0) -> GroupBlocks:
        """Every hub to the server of its member of the tier, the weighted average back."""
        after: dict[int, Blocks] = {}
        call = self.groups[0].call("average_groups", round)
        for member in np.unique(self.tiers[level]):
            mine = np.flatnonzero(self.tiers[level] == member).tolist()
            accounts = [self.groups[g].accounts for g in mine]
            for one in accounts:
                one.links.hubs_and_server(one.with_blocks, one.groups_blocks, "up", call)
            self._meet(mine)
            for one in accounts:
                one.links.hubs_and_server(one.with_blocks, one.groups_blocks, "down", call)
            held = [self.groups[g].at_clients.at_hubs(blocks[g]) if blocks[g].moved else blocks[g] for g in mine]
            coded = "average_groups" in self.groups[0].on_the_way.channels.codecs
            if coded:
                held = [self._arrived(sent, g, "up", level, call) for g, sent in zip(mine, held, strict=True)]
            mean = self._mean(held, mine, [self.samples[mine]] * len(blocks[0].base))
            after |= dict.fromkeys(mine, self._arrived(mean, mine[0], "down", level, call) if coded else mean)
        return tuple(after[g] for g in range(len(self.groups)))

    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """A hub of the first group to the server, which tells the same hub of every other one, and these theirs.

        The server of an inner tier hears it from the first group below it.
        """
        check_decision(value, by, len(self.groups[0].silos))
        call = Call("decide", round, self.groups[0].uses["decide"])
        for g, group in enumerate(self.groups):
            group.accounts.links.hubs_and_server([by], [DECISION], "down" if g else "up", call)
        for tier in self.tiers[1:]:
            for g in np.unique(tier, return_index=True)[1].tolist():
                self.groups[g].accounts.links.hubs_and_server([by], [DECISION], "up", call)
        answer: Number = self._each("decide", value=value, round=round, by=by)[0]
        return answer

    def _arrived(self, blocks: Blocks, group: int, way: Literal["up", "down"], level: int, call: Call) -> Blocks:
        """What the other side of a way gets of blocks; a server's channel is kept with its first group's."""
        one = self.groups[group]
        arrived = (
            one.on_the_way.vector(server_channel(j, way, level), weights, call, where=one.task.trained[j])
            for j, weights in enumerate(blocks.base)
        )
        return Blocks(tuple(arrived))

    def _meet(self, groups: Sequence[int]) -> None:
        """The server waits for the last hub; nobody goes on before."""
        for same in zip(*(self.groups[g].accounts.links.every for g in groups), strict=True):
            last = max(links.clocks.now for links in same)
            for links in same:
                links.clocks.hubs[:] = last

    def _mean(self, blocks: Sequence[Blocks], groups: Sequence[int], counted: Sequence[Ids | list[int]]) -> Blocks:
        """The average over groups, each of which counts so much: `counted` is by silo, then by group.

        The hubs' states of an optimiser are averaged as their blocks are, where those are averaged.
        """
        shares = [(np.asarray(each) / np.sum(each)).tolist() for each in counted]
        if self.groups[0].optimising is not None:
            average_hubs([self.groups[g].optimising for g in groups], shares)
        return _mean(blocks, shares)

    def model(self, blocks: GroupBlocks) -> tuple[Tensor, ...]:
        """The global model: the groups' blocks weighted by their samples."""
        if all(one.base is blocks[0].base or all(map(torch.equal, one.base, blocks[0].base)) for one in blocks[1:]):
            return blocks[0].base
        return _mean(blocks, [(self.samples / np.sum(self.samples)).tolist()] * len(blocks[0].base)).base


def _mean(blocks: Sequence[Blocks], shares: Sequence[Sequence[float]]) -> Blocks:
    """Weighted by the groups' shares, by silo."""
    means = []
    for share, *pieces in zip(shares, *(block.base for block in blocks), strict=True):
        mean = pieces[0] * share[0]
        for piece, weight in zip(pieces[1:], share[1:], strict=True):
            mean.add_(piece, alpha=weight)
        means.append(mean)
    return Blocks(tuple(means))
