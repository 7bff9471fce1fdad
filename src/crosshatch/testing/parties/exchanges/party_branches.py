"""Branches: parties between a silo's hub and its clients, which average their own clients more often than the hub does.

Blocks travel along the tree, one message for each branch with clients at work below it. A branch or client without any
counts in an average with the block that the party above it holds, which it would have started from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import Draw
from crosshatch.protocol.client_weights import everyones_weights
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import ClientWeights
from crosshatch.testing.parties.agreed import Batch
from crosshatch.testing.parties.desk import Desk
from crosshatch.testing.parties.exchanges.legs import Parties
from crosshatch.testing.parties.values_by_party import Blocks, Node, Who


@dataclass
class Branches:
    """The tree below each hub; a node is (silo, level, number), level 0 the hub itself.

    `_desks` are the nodes' own.
    """

    parties: Parties
    _desks: dict[Node, Desk] = field(default_factory=dict)

    @property
    def deepest(self) -> int:
        """The level of the branches that have clients."""
        return len(self.parties.agreed.branches)

    def _above(self, silo: int, client: int, level: int) -> Node:
        """The node of a level which a client is under: an equal share of the clients under each, in order."""
        count = prod(self.parties.agreed.branches[:level])
        return silo, level, client * count // self.parties.agreed.clients[silo]

    def _at_work(self, silo: int, batch: Batch, level: int) -> dict[Node, list[int]]:
        """The nodes of a level with clients at work, and these clients."""
        found: dict[Node, list[int]] = {}
        for client in self.parties.agreed.at_work(silo, batch):
            found.setdefault(self._above(silo, client, level), []).append(client)
        return found

    def _linked(self) -> Iterator[int]:
        return (j for j in self.parties.agreed.silos if j not in self.parties.agreed.one_party)

    def broadcast(self, blocks: Blocks, batch: Batch, depth: int, call: Call) -> Blocks:
        """Nodes of a depth send to everybody at work below them; a branch on the way holds what it passed on."""
        nodes, told = dict(blocks.nodes) if depth else {}, dict[Node, Tensor]()
        held: dict[Who, Tensor] = {(j, 0): blocks.hubs[j] for j in self.parties.agreed.one_party}
        for j in self._linked():
            for sender, clients in self._at_work(j, batch, depth).items():
                content = self._encode(sender, nodes.get(sender, blocks.hubs[j]), call)
                arrived = {sender: content}
                for level in range(depth + 1, self.deepest + 1):
                    for node in {self._above(j, k, level): None for k in clients}:
                        above = next(n for n in arrived if n[1] == level - 1 and self._is_above(n, node))
                        (arrived[node],) = self.parties.post.carry("branch-hub down", call, arrived[above])
                        nodes[node] = self._decode(sender, arrived[node], call)
                for k in clients:
                    own = self._above(j, k, self.deepest)
                    (mine,) = self.parties.post.carry("client-hub down", call, arrived[own])
                    held[j, k] = told[own] = self._decode(sender, mine, call)
        return Blocks(blocks.hubs, held, held, nodes=nodes, told=told)

    def _is_above(self, node: Node, below: Node) -> bool:
        shape = self.parties.agreed.branches
        return below[2] // prod(shape[node[1] : below[1]]) == node[2]

    def _encode(self, node: Node, block: Tensor, call: Call) -> Tensor:
        j = node[0]
        codec, value = self.parties.agreed.codec("broadcast", j), self.parties.hubs[j].model.sent(block)
        return self._desk(node).encode_vector("broadcast", codec, value, self._draw(node, call))

    def _decode(self, sender: Node, content: Tensor, call: Call) -> Tensor:
        """What any party below makes of a sender's message; no codec here has a memory."""
        model, agreed = self.parties.hubs[sender[0]].model, self.parties.agreed
        codec, draw = agreed.codec("broadcast", sender[0]), self._draw(sender, call)
        return model.filled(Desk().decode_vector("broadcast", codec, content, model.sizes[0], agreed.dtype, draw))

    def _draw(self, node: Node, call: Call) -> Draw:
        silo, level, number = node
        name = f"{silo} at depth {level}" if level else str(silo)
        return Draw(self.parties.agreed.seed, f"broadcast:{name}", (call.round, call.use, number))

    def _desk(self, node: Node) -> Desk:
        return self._desks.setdefault(node, Desk())

    def average(self, blocks: Blocks, batch: Batch, weights: ClientWeights, depth: int, call: Call) -> Blocks:
        """Clients send to their branch, and branches on to the nodes of a depth: sums weighted by the clients below."""
        hubs, nodes = list(blocks.hubs), dict(blocks.nodes)
        for j in (j for j in self._linked() if j in blocks.moved):
            agreed, at_work = self.parties.agreed, self.parties.agreed.at_work(j, batch)
            client_weights = everyones_weights(agreed.owners[j], agreed.clients[j], np.array(at_work), weights).tolist()
            given: dict[int, Tensor] = {}
            for client in self.parties.at_work(batch, [j]):
                me = (j, client.number)
                content = client.give_block(blocks.clients[me], blocks.starts[me], call)
                (given[client.number],) = self.parties.post.carry("client-hub up", call, content)
            below = self._sums_of_clients(j, given, blocks, client_weights, call)
            for level in range(self.deepest, depth, -1):
                arrived = {}
                for node, total in below.items():
                    (arrived[node],) = self.parties.post.carry("branch-hub up", call, total)
                below = self._sums_of_branches(j, level - 1, arrived, nodes, blocks.hubs[j], client_weights)
            for node, total in below.items():
                weight = sum(client_weights[k] for k in range(agreed.clients[j]) if self._above(j, k, depth) == node)
                mean = self.parties.hubs[j].model.filled(total / weight)
                if depth:
                    nodes[node] = mean
                else:
                    hubs[j] = mean
        return Blocks(tuple(hubs), nodes=nodes if depth else {})

    def _sums_of_clients(
        self,
        silo: int,
        given: Mapping[int, Tensor],
        blocks: Blocks,
        client_weights: list[float],
        call: Call,
    ) -> dict[Node, Tensor]:
        """The weighted sum over all its clients, at each branch with clients at work."""
        model, sums = self.parties.hubs[silo].model, dict[Node, Tensor]()
        for k, weight in enumerate(client_weights):
            node = self._above(silo, k, self.deepest)
            if any(self._above(silo, other, self.deepest) == node for other in given):
                before = blocks.nodes.get(node, blocks.hubs[silo])
                own = self._block_of(node, k, given[k], blocks, call) if k in given else model.sent(before)
                sums[node] = sums.get(node, torch.zeros_like(own)) + weight * own
        return sums

    def _block_of(self, node: Node, client: int, content: Tensor, blocks: Blocks, call: Call) -> Tensor:
        agreed, model = self.parties.agreed, self.parties.hubs[node[0]].model
        codec = agreed.codec("average", node[0])
        if codec is None:
            return content
        draw = Draw(agreed.seed, f"average:{node[0]}", (call.round, call.use, client))
        size = model.sizes[0]
        move = self._desk(node).decode_vector(f"average {client}", codec, content, size, agreed.dtype, draw)
        return model.sent(blocks.told[node]) + move

    def _sums_of_branches(
        self,
        silo: int,
        level: int,
        arrived: Mapping[Node, Tensor],
        nodes: Mapping[Node, Tensor],
        hub: Tensor,
        client_weights: list[float],
    ) -> dict[Node, Tensor]:
        """At each node of a level: the sums of the branches that sent, and its own block in place of the others."""
        sums: dict[Node, Tensor] = {}
        for node, total in arrived.items():
            above = next(self._above(silo, k, level) for k in range(len(client_weights)) if self._under(silo, k, node))
            sums[above] = sums.get(above, torch.zeros_like(total)) + total
        for above in sums:
            own = self.parties.hubs[silo].model.sent(nodes.get(above, hub))
            for k, weight in enumerate(client_weights):
                if self._under(silo, k, above) and self._above(silo, k, level + 1) not in arrived:
                    sums[above] = sums[above] + weight * own
        return sums

    def _under(self, silo: int, client: int, node: Node) -> bool:
        return self._above(silo, client, node[1]) == node
