"""The tree below a hub: branches, which average their own clients more often than the hub does.

Blocks travel along the tree, one message for each branch with clients at work below it. A branch or client without any
counts in an average with the block that the party above it holds, which it would have started from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from crosshatch.channels import Channels
from crosshatch.errors import ConfigError
from crosshatch.parties.holdings.agreed import Agreed, Batch, Roster
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.holdings.vectors import Vectors
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import branch_name, client_name
from crosshatch.parties.post import Post
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import ClientWeights, block_channel


def node_above(agreed: Agreed, silo: int, client: int, level: int) -> int:
    """The number of the node of a level which a client is under: an equal share of the clients under each, in order."""
    return client * prod(agreed.branches[:level]) // agreed.clients[silo]


@dataclass
class Node:
    """One party of the tree and what it does with blocks; the hub is the node of level 0."""

    agreed: Agreed
    post: Post
    group: int
    silo: int
    level: int
    number: int
    roster: Roster
    vectors: Vectors
    channels: Channels

    @property
    def _is_deepest(self) -> bool:
        return self.level == len(self.agreed.branches)

    def _node_above(self, client: int, level: int) -> int:
        return node_above(self.agreed, self.silo, client, level)

    def _is_mine(self, client: int) -> bool:
        return self._node_above(client, self.level) == self.number

    def _above(self, client: int) -> Name:
        return branch_name(self.group, self.silo, self.level - 1, self._node_above(client, self.level - 1))

    def _below(self, clients: Sequence[int]) -> dict[int, Name]:
        """Who is next below it with these clients, by number: branches, or the clients themselves."""
        if self._is_deepest:
            return {k: client_name(self.group, self.silo, k) for k in clients}
        numbers = dict.fromkeys(self._node_above(k, self.level + 1) for k in clients)
        return {n: branch_name(self.group, self.silo, self.level + 1, n) for n in numbers}

    def _at_work(self, batch: Batch) -> list[int]:
        return [k for k in self.roster.at_work(batch) if self._is_mine(k)]

    def pass_down(self, clients: Sequence[int], call: Call, content: Tensor) -> None:
        """A message on its way to these clients."""
        for name in self._below(clients).values():
            self.post.send(name, "client-hub down" if self._is_deepest else "branch-hub down", call, content)

    def pass_decision(self, call: Call) -> float:
        """What was decided comes from above and goes on to everybody below."""
        clients = [k for k in range(self.roster.clients) if self._is_mine(k)]
        (said,) = self.post.recv(self._above(clients[0]), call)
        self.pass_down(clients, call, said)
        return float(said)

    def broadcast(self, blocks: Blocks, batch: Batch, depth: int, call: Call) -> Blocks:
        """A node of that depth sends to everybody at work below it; a branch on the way holds what it passes on."""
        clients = self._at_work(batch)
        if self.level < depth or not clients:
            return Blocks(blocks.mine)
        name, sender = block_channel(self.silo, depth), self._node_above(clients[0], depth)
        draw = self.channels.draw("broadcast", name, (call.round, call.use), sender)
        if self.level == depth:
            content = self.channels.write_vector(draw, self.vectors.sent(self._held(blocks)))
        else:
            (content,) = self.post.recv(self._above(clients[0]), call)
        self.pass_down(clients, call, content)
        arrived = self.channels.read_vector(draw, content, self.vectors.size, self.agreed.dtype)
        told = self.vectors.filled(arrived)
        return Blocks(blocks.mine if self.level == depth else told, told)

    def _held(self, blocks: Blocks) -> Tensor:
        if blocks.mine is None:
            raise ConfigError(
                f"branch {self.number} at depth {self.level} of silo number {self.silo} has no block: broadcast from "
                "the hub (depth 0) to this batch before"
            )
        return blocks.mine

    def average(self, blocks: Blocks, batch: Batch, weights: ClientWeights, depth: int, call: Call) -> Blocks:
        """Sums weighted by the clients below go up to the nodes of a depth, each of which has the average then."""
        clients = self._at_work(batch)
        if self.level < depth or not clients:
            return Blocks(blocks.mine if self.level <= depth else None)
        own, each = self.vectors.sent(self._held(blocks)), self.roster.weights(self.roster.at_work(batch), weights)
        mine = [k for k in range(self.roster.clients) if self._is_mine(k)]
        total = torch.zeros_like(own)
        if self._is_deepest:
            for k in mine:
                total = total + each[k] * (self._block_of(k, blocks.latest, call) if k in clients else own)
        else:
            below = self._below(clients)
            for name in below.values():
                total = total + self.post.recv(name, call)[0]
            for k in mine:
                if self._node_above(k, self.level + 1) not in below:
                    total = total + each[k] * own
        if self.level > depth:
            self.post.send(self._above(clients[0]), "branch-hub up", call, total)
            return Blocks(blocks.mine)
        return Blocks(self.vectors.filled(total / sum(each[k] for k in mine)))

    def _block_of(self, client: int, told: Tensor | None, call: Call) -> Tensor:
        (content,) = self.post.recv(client_name(self.group, self.silo, client), call)
        if "average" not in self.channels.codecs:
            return content
        assert told is not None
        draw = self.channels.draw("average", str(self.silo), (call.round, call.use), client)
        return self.vectors.sent(told) + self.channels.read_vector(draw, content, self.vectors.size, self.agreed.dtype)
