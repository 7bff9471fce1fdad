"""Groups: whole vertical federations that are members of horizontal tiers, averaged by a server.

Each group is a `SimulatedFederation` of its own samples; an exchange is the same exchange in every group. Local steps
of all groups are computed together, so that small models are stacked over groups as well as over silos and clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights, Within
from crosshatch.local.pool import run_all
from crosshatch.local.read_chain import as_chain
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import server_channel
from crosshatch.simulator.vertical.averaging import averaged
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.joint import average_jointly, embed_jointly, is_joint
from crosshatch.simulator.vertical.optimising import average_hubs
from crosshatch.simulator.vertical.sharing import Frozen

T = TypeVar("T")
GroupBlocks = tuple[Blocks, ...]


@dataclass
class GroupedFederation:
    """Several groups; `tiers[level][g]` is the member of that horizontal tier which group g belongs to."""

    groups: tuple[SimulatedFederation, ...]
    samples: Ids  # of each group
    tiers: tuple[Ids, ...]
    one_step: bool = False  # a round is one step, and all groups are averaged after it

    @property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos of a group."""
        return self.groups[0].silos

    @property
    def labels_held(self) -> bool:
        """Whether one silo of a group alone knows the labels."""
        return self.groups[0].labels_held

    def _each(self, what: Callable[[SimulatedFederation, int], T]) -> tuple[T, ...]:
        return tuple(what(group, g) for g, group in enumerate(self.groups))

    @property
    def _random(self) -> bool:
        """Whether a block draws random numbers, which are a group's own."""
        return self.groups[0].embedder.random

    @cached_property
    def _parallel(self) -> bool:
        """Whether threads may take a group's blocks each: torch spreads chains itself, and has one random generator."""
        return not (self._random or any(as_chain(block) is not None for block in self.groups[0].task.blocks))

    @cached_property
    def _joint(self) -> bool:
        """Whether one pass over all groups can stand for one in each; the proximal step is not linear."""
        one = self.groups[0]
        plain = not (one.arrivals.altered or one.branches or one.task.regulariser.l1)
        alone = any(group.nobody_to_average_with for group in self.groups)
        return self.one_step and plain and not self._random and not alone

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> tuple[Batch, ...]:
        """`size` samples in every group."""
        return self._each(lambda group, _: group.draw_batch(size, round=round, parts=parts, first=first))

    def select(self, fraction: float, *, round: int) -> tuple[Batch, ...]:
        """A fraction of the clients of every group."""
        return self._each(lambda group, _: group.select(fraction, round=round))

    def broadcast(
        self, blocks: GroupBlocks, batch: tuple[Batch, ...], *, within: Within = "silo", depth: int = 0
    ) -> GroupBlocks:
        """Hub (or server, or branches) to clients in every group."""
        now = averaged(blocks)
        return self._each(lambda group, g: group.broadcast(now[g], batch[g], within=within, depth=depth))

    def average(
        self,
        blocks: GroupBlocks,
        batch: tuple[Batch, ...],
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> GroupBlocks:
        """Clients to hub in every group, the local steps of all groups computed in one go.

        They are put off where the groups' own average is likely to follow, which needs less than each group's.
        """
        now = averaged(blocks)
        if self.groups[0].branches is not None:
            done = self._each(lambda group, g: group.average(now[g], batch[g], weights=weights, depth=depth))
        else:
            asked = self._each(lambda group, g: group.ask_average(now[g], batch[g], weights=weights, within=within))
            done = asked if is_joint(asked) else averaged(asked)
        if within == "silo":
            return done
        self._meet()
        counted = [[group.counted(j, batch[g], weights) for g, group in enumerate(self.groups)] for j in self.silos]
        self._average_states(range(len(self.groups)), counted)
        return (self._mean(done, counted),) * len(self.groups)

    def average_groups(self, blocks: GroupBlocks, *, round: int, level: int = 0) -> GroupBlocks:
        """Every hub to the server of its member of the tier, the weighted average back."""
        members = np.unique(self.tiers[level])
        if len(members) > 1:
            blocks = averaged(blocks)
        after: dict[int, Blocks] = {}
        call = self.groups[0].call("average_groups", round)
        for member in members:
            mine = np.flatnonzero(self.tiers[level] == member).tolist()
            for g in mine:
                self.groups[g].accounts.to_server(call)
            self._meet(mine)
            for g in mine:
                self.groups[g].accounts.from_server(call)
            sent = tuple(self._arrived(blocks[g], g, "up", level, call) for g in mine)
            counted = [self.samples[mine]] * len(self.silos)
            mean = self._mean(sent, counted)
            self._average_states(mine, counted)
            after |= dict.fromkeys(mine, self._arrived(mean, mine[0], "down", level, call))
        return tuple(after[g] for g in range(len(self.groups)))

    def _average_states(self, groups: Sequence[int], counted: Sequence[Ids | list[int]]) -> None:
        """The hubs' states of an optimiser, where those are averaged, as their blocks are."""
        if self.groups[0].optimising is not None:
            average_hubs([self.groups[g].optimising for g in groups], _shares(counted))

    def _arrived(self, blocks: Blocks, group: int, way: Literal["up", "down"], level: int, call: Call) -> Blocks:
        """What the other side of a way gets of blocks; a server's channel is kept with its first group's."""
        one = self.groups[group]
        if "average_groups" not in one.arrivals.altered:
            return blocks
        arrived = (
            one.arrivals.vector(server_channel(j, way, level), weights, call, where=one.task.trained[j])
            for j, weights in enumerate(blocks.base)
        )
        return Blocks(tuple(arrived))

    def _meet(self, groups: Sequence[int] | None = None) -> None:
        """The server waits for the last hub; nobody goes on before."""
        members = self.groups if groups is None else [self.groups[g] for g in groups]
        clocks = [group.accounts.links.clocks for group in members]
        last = max(clock.now for clock in clocks)
        for clock in clocks:
            clock.hubs[:] = last

    def _mean(self, blocks: GroupBlocks, counted: Sequence[Ids | list[int]]) -> Blocks:
        """The average over groups, each of which counts so much: `counted` is by silo, then by group."""
        shares = _shares(counted)
        if is_joint(blocks):
            return average_jointly(blocks, shares)
        means = []
        for share, *pieces in zip(shares, *(block.base for block in blocks), strict=True):
            mean = pieces[0] * share[0]
            for piece, weight in zip(pieces[1:], share[1:], strict=True):
                mean.add_(piece, alpha=weight)
            means.append(mean)
        return Blocks(tuple(means))

    def model(self, blocks: GroupBlocks) -> tuple[Tensor, ...]:
        """The global model: the groups' blocks weighted by their samples."""
        now = averaged(blocks)
        return now[0].base if _equal(now) else self._mean(now, [self.samples] * len(self.silos)).base

    def embed(
        self,
        blocks: GroupBlocks,
        batch: tuple[Batch, ...],
        *,
        only: int | None = None,
        known: tuple[Embeddings, ...] | None = None,
    ) -> tuple[Embeddings, ...]:
        """Outputs in every group; threads take whole groups where that is safe."""
        now = averaged(blocks)
        at_hubs = all(one.steps is None for one in now)
        same = at_hubs and all(one.base is now[0].base for one in now)
        if self._joint and same and only is None and not any(one.whole or len(one.parts) > 1 for one in batch):
            return embed_jointly(self.groups, now[0], batch)
        work = [
            partial(group.embed, now[g], batch[g], only=only, known=None if known is None else known[g])
            for g, group in enumerate(self.groups)
        ]
        if not (at_hubs and self._parallel):
            return tuple(run() for run in work)
        return tuple(run_all(work, threads=self.groups[0].threads))

    def share(
        self,
        embeddings: tuple[Embeddings, ...],
        batch: tuple[Batch, ...],
        *,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> tuple[Frozen, ...]:
        """The exchange inside every group."""
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
        """The exchange with the label's holder inside every group."""
        return self._each(
            lambda group, g: group.share_derivatives(
                embeddings[g], batch[g], around=None if around is None else around[g], step=step, senders=senders, to=to
            )
        )

    def descend(
        self,
        blocks: GroupBlocks,
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
    ) -> GroupBlocks:
        """Local steps in every group."""
        now = averaged(blocks)
        return self._each(
            lambda group, g: group.descend(
                now[g], batch[g], frozen[g], steps=steps, step_size=step_size, first=first, proximal=proximal,
                only=only, anticipation=anticipation, continued=continued,
                earlier=[(samples[g], known[g]) for samples, known in earlier],
            )
        )  # fmt: skip


def _shares(counted: Sequence[Ids | list[int]]) -> list[list[float]]:
    """The weights of groups in an average, by silo."""
    return [(np.asarray(groups) / np.sum(groups)).tolist() for groups in counted]


def _equal(blocks: Sequence[Blocks]) -> bool:
    """Whether the groups hold the same blocks, as after an average of all."""
    return all(one is blocks[0] or all(map(torch.equal, one.base, blocks[0].base)) for one in blocks[1:])
