"""Groups: whole vertical federations that are members of horizontal tiers, averaged by a server.

Each group is a `SimulatedFederation` of its own samples; an exchange is the same exchange in every group. Local steps
of all groups are computed together, so that small models are stacked over groups as well as over silos and clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights, Within
from crosshatch.simulator.batch import Batch, Ids
from crosshatch.simulator.contents import Call, Specs
from crosshatch.simulator.federation import SimulatedFederation
from crosshatch.simulator.local.chain import as_chain, draws_random_numbers
from crosshatch.simulator.local.pool import run_all
from crosshatch.simulator.traffic import Traffic
from crosshatch.simulator.values import Blocks, Embeddings, Frozen

T = TypeVar("T")
GroupBlocks = tuple[Blocks, ...]


@dataclass
class GroupedFederation:
    """Several groups; `tiers[level][g]` is the member of that horizontal tier which group g belongs to."""

    groups: tuple[SimulatedFederation, ...]
    samples: Ids  # of each group
    tiers: tuple[Ids, ...]

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

    @cached_property
    def _parallel(self) -> bool:
        """Whether threads may take a group's blocks each: torch spreads chains itself, and has one random generator."""
        one = self.groups[0]
        pairs = [(block, silo.train[:1]) for block, silo in zip(one.task.blocks, one.data.silos, strict=True)]
        return not any(as_chain(block) is not None or draws_random_numbers(block, x) for block, x in pairs)

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
        return self._each(lambda group, g: group.broadcast(blocks[g], batch[g], within=within, depth=depth))

    def average(
        self,
        blocks: GroupBlocks,
        batch: tuple[Batch, ...],
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> GroupBlocks:
        """Clients to hub in every group, the local steps of all groups computed in one go."""
        if self.groups[0].branches is not None:
            return self._each(lambda group, g: group.average(blocks[g], batch[g], weights=weights, depth=depth))
        moved = [block.moved for block in blocks if block.moved is not None]
        if len(moved) < len(blocks):
            return blocks
        shares = self._each(lambda group, g: group.client_weights(batch[g], weights))
        keys = [(g, j) for g, one in enumerate(moved) for j in one.problems]
        problems = [moved[g].problems[j] for g, j in keys]
        solved = moved[0].solver(problems, [shares[g][j] for g, j in keys], False)
        sums: list[dict[int, Tensor]] = [{} for _ in self.groups]
        for (g, j), total in zip(keys, solved, strict=True):
            sums[g][j] = total
        averaged = self._each(lambda group, g: group.finish_average(blocks[g], batch[g], shares[g], sums[g], within))
        if within == "silo":
            return averaged
        self._meet()
        at_work = np.array([max(len(clients) for clients in one.clients) for one in batch])
        return (self._mean(averaged, at_work),) * len(self.groups)

    def average_groups(self, blocks: GroupBlocks, *, round: int, level: int = 0) -> GroupBlocks:
        """Every hub to the server of its member of the tier, the weighted average back."""
        averaged = list(blocks)
        call = Call("average_groups", round)
        for member in np.unique(self.tiers[level]):
            mine = np.flatnonzero(self.tiers[level] == member)
            self._each_hub(mine, blocks[0], lambda traffic, j, specs: traffic.hub_to_server(j, specs, 1, call))
            self._meet(mine)
            self._each_hub(mine, blocks[0], lambda traffic, j, specs: traffic.server_to_hub(j, specs, 1, call))
            mean = self._mean([self._arrived(blocks[g], int(g), round) for g in mine], self.samples[mine])
            for g in mine:
                averaged[g] = mean
        return tuple(averaged)

    def _each_hub(self, groups: Ids, blocks: Blocks, what: Callable[[Traffic, int, Specs], None]) -> None:
        for g in groups:
            traffic, routes = self.groups[g].traffic, self.groups[g].routes
            for j, weights in enumerate(blocks.base):
                traffic.note(partial(what, traffic, j, routes.block("average_groups", weights.shape[0])))

    def _arrived(self, blocks: Blocks, group: int, round: int) -> Blocks:
        """What the server gets of a group's blocks."""
        coding = self.groups[group].coding
        return Blocks(tuple(coding.vector("average_groups", str(j), w, round=round) for j, w in enumerate(blocks.base)))

    def _meet(self, groups: Ids | None = None) -> None:
        """The server waits for the last hub; nobody goes on before."""
        clocks = [self.groups[g].traffic.clocks for g in (range(len(self.groups)) if groups is None else groups)]
        last = max(clock.now for clock in clocks)
        for clock in clocks:
            clock.hubs[:] = last

    def _mean(self, blocks: Sequence[Blocks], samples: Ids) -> Blocks:
        weights = (samples / samples.sum()).tolist()
        means = []
        for pieces in zip(*(block.base for block in blocks), strict=True):
            mean = pieces[0] * weights[0]
            for piece, weight in zip(pieces[1:], weights[1:], strict=True):
                mean.add_(piece, alpha=weight)
            means.append(mean)
        return Blocks(tuple(means))

    def model(self, blocks: GroupBlocks) -> tuple[Tensor, ...]:
        """The global model: the groups' blocks weighted by their samples."""
        return blocks[0].base if _equal(blocks) else self._mean(blocks, self.samples).base

    def embed(
        self,
        blocks: GroupBlocks,
        batch: tuple[Batch, ...],
        *,
        only: int | None = None,
        known: tuple[Embeddings, ...] | None = None,
    ) -> tuple[Embeddings, ...]:
        """Outputs in every group; threads take whole groups where that is safe."""
        work = [
            partial(group.embed, blocks[g], batch[g], only=only, known=None if known is None else known[g])
            for g, group in enumerate(self.groups)
        ]
        if any(one.moved is not None for one in blocks) or not self._parallel:
            return tuple(run() for run in work)
        return tuple(run_all(work, threads=self.groups[0].threads))

    def share(
        self, embeddings: tuple[Embeddings, ...], batch: tuple[Batch, ...], *, to: int | None = None
    ) -> tuple[Frozen, ...]:
        """The exchange inside every group."""
        return self._each(lambda group, g: group.share(embeddings[g], batch[g], to=to))

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
        pull: float = 0.0,
        only: int | None = None,
    ) -> GroupBlocks:
        """Local steps in every group."""
        return self._each(
            lambda group, g: group.descend(
                blocks[g], batch[g], frozen[g], steps=steps, step_size=step_size, first=first, pull=pull, only=only
            )
        )


def _equal(blocks: GroupBlocks) -> bool:
    """Whether the groups hold the same blocks, as after an average of all."""
    return all(one is blocks[0] or all(map(torch.equal, one.base, blocks[0].base)) for one in blocks[1:])
