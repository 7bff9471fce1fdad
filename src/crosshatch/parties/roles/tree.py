"""The tree below a hub: branches, which average their own clients more often than the hub does.

Blocks travel along the tree, one message for each branch with clients at work below it. A branch or client without any
counts in an average with the block that the party above it holds, which it would have started from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, final

import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Within
from crosshatch.parties.holdings.agreed import Agreed, Batch
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import branch_name, client_name
from crosshatch.parties.post import Post
from crosshatch.parties.roles.block_averaging import Keeper
from crosshatch.parties.roles.role import Role
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import ClientWeights, block_channel


def node_above(agreed: Agreed, silo: int, client: int, level: int) -> int:
    """The number of the node of a level which a client is under: an equal share of the clients under each, in order."""
    return client * prod(agreed.branches[:level]) // agreed.clients[silo]


@dataclass
class Node:
    """One party of the tree and what it does with blocks; the hub is the node of level 0."""

    post: Post
    group: int
    level: int
    number: int
    keeper: Keeper

    def __post_init__(self) -> None:
        self._agreed, self._silo, self._clients = self.keeper.agreed, self.keeper.silo, self.keeper.roster.clients
        self._is_deepest = self.level == len(self._agreed.branches)

    def _node_above(self, client: int, level: int) -> int:
        return node_above(self._agreed, self._silo, client, level)

    def _is_mine(self, client: int) -> bool:
        return self._node_above(client, self.level) == self.number

    def _above(self, client: int) -> Name:
        return branch_name(self.group, self._silo, self.level - 1, self._node_above(client, self.level - 1))

    def _below(self, clients: Sequence[int]) -> dict[int, Name]:
        """Who is next below it with these clients, by number: branches, or the clients themselves."""
        if self._is_deepest:
            return {k: client_name(self.group, self._silo, k) for k in clients}
        numbers = dict.fromkeys(self._node_above(k, self.level + 1) for k in clients)
        return {n: branch_name(self.group, self._silo, self.level + 1, n) for n in numbers}

    def _at_work(self, batch: Batch) -> list[int]:
        return [k for k in self.keeper.roster.at_work(batch) if self._is_mine(k)]

    def pass_down(self, clients: Sequence[int], call: Call, content: Tensor) -> None:
        """A message on its way to these clients."""
        for name in self._below(clients).values():
            self.post.send(name, "client-hub down" if self._is_deepest else "branch-hub down", call, content)

    def pass_decision(self, call: Call) -> float:
        """What was decided comes from above and goes on to everybody below."""
        clients = [k for k in range(self._clients) if self._is_mine(k)]
        (said,) = self.post.recv(self._above(clients[0]), call)
        self.pass_down(clients, call, said)
        return float(said)

    def broadcast(self, blocks: Blocks, batch: Batch, depth: int, call: Call) -> Blocks:
        """A node of that depth sends to everybody at work below it; a branch on the way holds what it passes on."""
        clients = self._at_work(batch)
        if self.level < depth or not clients:
            return Blocks(blocks.mine)
        name, sender = block_channel(self._silo, depth), self._node_above(clients[0], depth)
        draw = self.keeper.channels.draw("broadcast", name, (call.round, call.use), sender)
        if self.level == depth:
            content = self.keeper.channels.write_vector(draw, self.keeper.vectors.sent(self._held(blocks)))
        else:
            (content,) = self.post.recv(self._above(clients[0]), call)
        self.pass_down(clients, call, content)
        arrived = self.keeper.channels.read_vector(draw, content, self.keeper.vectors.size, self._agreed.dtype)
        told = self.keeper.vectors.filled(arrived)
        return Blocks(blocks.mine if self.level == depth else told, told)

    def _held(self, blocks: Blocks) -> Tensor:
        if blocks.mine is None:
            raise ConfigError(
                f"branch {self.number} at depth {self.level} of silo number {self._silo} has no block: broadcast from "
                "the hub (depth 0) to this batch before"
            )
        return blocks.mine

    def average(self, blocks: Blocks, batch: Batch, weights: ClientWeights, depth: int, call: Call) -> Blocks:
        """Sums weighted by the clients below go up to the nodes of a depth, each of which has the average then."""
        clients = self._at_work(batch)
        if self.level < depth or not clients:
            return Blocks(blocks.mine if self.level <= depth else None)
        own, roster = self.keeper.vectors.sent(self._held(blocks)), self.keeper.roster
        each = roster.weights(roster.at_work(batch), weights)
        mine = [k for k in range(self._clients) if self._is_mine(k)]
        total = torch.zeros_like(own)
        if self._is_deepest:
            for k in mine:
                total = total + each[k] * (self._sent_by(k, blocks.latest, call) if k in clients else own)
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
        return Blocks(self.keeper.vectors.filled(total / sum(each[k] for k in mine)))

    def _sent_by(self, client: int, told: Tensor | None, call: Call) -> Tensor:
        (content,) = self.post.recv(client_name(self.group, self._silo, client), call)
        return self.keeper.block_of(client, content, told, call)


@final
@dataclass(kw_only=True)
class BranchRole(Role):
    """A branch's own half: blocks and decisions pass through it, of all else it sees nothing."""

    silo: int
    node: Node

    def state(self) -> dict[str, Any]:
        return {**super().state(), "channels": self.node.keeper.channels.snapshot()}

    def load(self, state: Mapping[str, Any]) -> None:
        super().load(state)
        self.node.keeper.channels.restore(state["channels"])

    def _broadcast(self, blocks: Blocks, batch: Batch, within: Within, depth: int, call: Call) -> Blocks:
        return blocks if within == "federation" else self.node.broadcast(blocks, batch, depth, call)

    def _average(
        self, blocks: Blocks, batch: Batch, weights: ClientWeights, within: Within, depth: int, call: Call
    ) -> Blocks:
        if within == "federation" or self.silo not in blocks.moved:
            return self._rest(blocks)
        return self.node.average(blocks, batch, weights, depth, call)

    def _decide(self, value: float, by: int, call: Call) -> float:  # noqa: ARG002
        return self.node.pass_decision(call)
