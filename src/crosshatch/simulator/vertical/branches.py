"""Branches: nodes between a silo's hub and its clients, which average their own clients more often than the hub does.

Blocks travel along the tree: client, its branch, the branches above, hub. Embeddings go between client and hub
directly. What a client sends is encoded where "average" has a codec; what a branch puts together travels as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.client_weights import everyones_weights
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import block_channel
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.on_the_way import OnTheWay


@dataclass(frozen=True)
class Branches:
    """`shape` (2, 3): every silo has two branches of three each. Depth 0 is the hub, `len(shape)` the clients' own.

    >>> from crosshatch.channels import Channels
    >>> Branches((2, 3), (12,), (), OnTheWay(Channels({}, 0), 12)).of(0, np.array([0, 1, 2, 11]), 2)
    array([0, 0, 1, 5])
    """

    shape: tuple[int, ...]
    clients: tuple[int, ...]  # of each silo
    owners: Sequence[Ids]  # (n,) who holds each silo's samples
    on_the_way: OnTheWay

    @property
    def deepest(self) -> int:
        """The depth of the branches that have clients."""
        return len(self.shape)

    def count(self, depth: int) -> int:
        """Nodes of a silo at a depth."""
        return prod(self.shape[:depth])

    def of(self, silo: int, clients: Ids, depth: int) -> Ids:
        """The node at a depth under which each client is: an equal share of them, in order, under each."""
        return clients * self.count(depth) // self.clients[silo]

    def above(self, depth: int) -> Ids:
        """For each innermost branch the node at a depth above it."""
        return np.arange(self.count(self.deepest)) * self.count(depth) // self.count(self.deepest)

    def at_clients(self, held: Sequence[Tensor], batch: Batch) -> tuple[Tensor, ...]:
        """By silo what its clients at work hold: (p,), or (clients, p) where their branches differ, (branches, p)."""
        return tuple(
            one if one.dim() == 1 else one.index_select(0, torch.as_tensor(self.of(j, batch.clients[j], self.deepest)))
            for j, one in enumerate(held)
        )

    def average(
        self, blocks: Blocks, moved: Mapping[int, Tensor], batch: Batch, weights: ClientWeights, depth: int, call: Call
    ) -> Blocks:
        """Averages at the nodes of a depth, from the blocks (clients at work, p) of the clients that `moved`.

        A client or branch with nobody at work counts with the block it would have started from.
        """
        starts = self.at_clients(blocks.received or blocks.branches or blocks.base, batch)
        averages = [self._held(blocks, j) for j in range(len(blocks.base))]
        for j, rows in moved.items():
            clients = batch.clients[j]
            own = torch.as_tensor(self.of(j, clients, self.deepest))
            before = averages[j]
            rows = self.on_the_way.blocks(rows, starts[j], j, clients, call)
            everyone = everyones_weights(self.owners[j], self.clients[j], clients, weights)
            branch = self.of(j, np.arange(self.clients[j]), self.deepest)
            total = torch.as_tensor(np.bincount(branch, everyone, minlength=len(before))).to(rows)
            each = torch.as_tensor(everyone[clients]).to(rows)
            apart = each.unsqueeze(1) * (rows - before.index_select(0, own))
            sums = (before * total.unsqueeze(1)).index_add_(0, own, apart)
            averages[j] = self._gather(sums, total, before, depth)
        if depth == 0:
            return Blocks(tuple(averages[j][0] if j in moved else base for j, base in enumerate(blocks.base)))
        return Blocks(blocks.base, branches=tuple(averages))

    def _held(self, blocks: Blocks, silo: int) -> Tensor:
        """What the innermost branches of a silo hold, (branches, p)."""
        return blocks.branches[silo] if blocks.branches else blocks.base[silo].expand(self.count(self.deepest), -1)

    def _gather(self, sums: Tensor, total: Tensor, before: Tensor, depth: int) -> Tensor:
        """Weighted sums (branches, p) of the innermost branches, averaged at the nodes of a depth and sent back."""
        node = torch.as_tensor(self.above(depth))
        shape = (self.count(depth), sums.shape[1])
        summed = torch.zeros(shape, dtype=sums.dtype, device=sums.device).index_add_(0, node, sums)
        weight = total.new_zeros(shape[0]).index_add_(0, node, total)
        mean = (summed / weight.clamp(min=torch.finfo(weight.dtype).tiny).unsqueeze(1)).index_select(0, node)
        return torch.where((weight > 0).index_select(0, node).unsqueeze(1), mean, before)

    def broadcast(self, blocks: Blocks, batch: Batch, depth: int, call: Call) -> Blocks:
        """What arrives of the blocks that the nodes of a depth send to everybody at work below them.

        A branch above others or above clients at work holds what it got; one without keeps what its node had.
        """
        if not any(self.on_the_way.alters("broadcast", j) for j in range(len(blocks.base))):
            return Blocks(blocks.base, branches=blocks.branches if depth else (), sent_to=batch.clients)
        ids, node = np.arange(self.count(depth)), torch.as_tensor(self.above(depth))
        first = torch.as_tensor(np.searchsorted(self.above(depth), ids))  # all branches under a node have its block
        branches, received = [], []
        for j, base in enumerate(blocks.base):
            held = self._held(blocks, j) if depth else base.expand(self.count(self.deepest), -1)
            branches.append(held)
            received.append(held if depth else base)
            if not self.on_the_way.alters("broadcast", j):
                continue
            name, sent = block_channel(j, depth), held.index_select(0, first)
            arrived = self.on_the_way.vectors(name, sent, ids, len(ids), call, where=self.on_the_way.trained[j])
            received[j] = arrived.index_select(0, node) if depth else arrived[0]
            if depth < self.deepest:
                below = np.unique(self.of(j, batch.clients[j], depth + 1))
                got = torch.as_tensor(np.isin(self.above(depth + 1), below)).unsqueeze(1)
                branches[j] = torch.where(got, arrived.index_select(0, node), held)
        return Blocks(blocks.base, branches=tuple(branches), received=tuple(received), sent_to=batch.clients)
