"""The messages of blocks along a tree of branches, and the branches' clocks in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosshatch.network import Seconds
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import DECISION, Always, Call, Specs
from crosshatch.simulator.accounting.accounts import Accounts
from crosshatch.simulator.accounting.legs import ClientLeg
from crosshatch.simulator.accounting.links import message_sizes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.branches import Branches


@dataclass(frozen=True)
class BranchAccounts:
    """The messages of the blocks' way along the tree, and the branches' clocks in between."""

    branches: Branches
    accounts: Accounts

    def down(self, batch: Batch, depth: int, call: Call) -> None:
        """Nodes of a depth to everybody at work below them."""
        for j, size in enumerate(self.accounts.sizes):
            if size:
                self._down(batch, j, depth, self.accounts.contents.block("broadcast", size), call)

    def decide(self, everybody: Batch, by: int, call: Call) -> None:
        """One hub to all others, and every hub to everybody below it."""
        self.accounts.decide(everybody, by, call, branches=True)
        for j in range(len(self.accounts.sizes)):
            self._down(everybody, j, 0, DECISION, call)

    def _down(self, batch: Batch, silo: int, depth: int, specs: Specs, call: Call) -> None:
        links = self.accounts.links
        if links.one_machine or silo in links.one_party:
            return
        when = links.clocks.branches.get((silo, depth), np.full(1, links.clocks.hubs[silo]))
        for level in range(depth + 1, self.branches.deepest + 1):
            seconds = self._leg(silo, batch.clients[silo], level, "down", specs, call)
            when = when[np.arange(self.branches.count(level)) // self.branches.shape[level - 1]] + seconds
        own = self.branches.of(silo, batch.clients[silo], self.branches.deepest)
        links.send(batch, ClientLeg(call, "down", (silo,), [Always(specs)], when=when[own]))

    def up(self, batch: Batch, silo: int, depth: int, call: Call) -> None:
        """Clients at work to their branch, and on to the nodes of a depth."""
        links, contents, size = self.accounts.links, self.accounts.contents, self.accounts.sizes[silo]
        if links.one_machine or silo in links.one_party or not size:
            return
        clients, deepest = batch.clients[silo], self.branches.deepest
        block = Always(contents.block("average", size))
        arrivals = links.send(batch, ClientLeg(call, "up", (silo,), [block], hubs_wait=False))
        when = _latest(arrivals, self.branches.of(silo, clients, deepest), self.branches.count(deepest))
        plain = contents.plain_block(size)
        for level in range(deepest, depth, -1):
            when = when + self._leg(silo, clients, level, "up", plain, call)
            node = np.arange(self.branches.count(level)) // self.branches.shape[level - 1]
            when = _latest(when, node, self.branches.count(level - 1))
        if depth:
            links.clocks.branches[silo, depth] = when
        else:
            links.clocks.hubs[silo] = max(links.clocks.hubs[silo], when[0])

    def _leg(
        self, silo: int, clients: Ids, level: int, direction: Literal["up", "down"], specs: Specs, call: Call
    ) -> float:
        """One message for each branch of a level with clients at work; returns the seconds it takes."""
        at_work, links = len(np.unique(self.branches.of(silo, clients, level))), self.accounts.links
        (size,) = message_sizes([specs], call)
        links.meter.count(f"branch-hub {direction}", call.exchange, messages=at_work, size=size * at_work)
        return float(links.network.transfer("branch-hub", direction, np.array([size]), links.silos[silo], None)[0])


def _latest(when: Seconds, node: Ids, nodes: int) -> Seconds:
    """The latest arrival at each node; minus infinity where nothing arrives."""
    latest = np.full(nodes, -np.inf)
    np.maximum.at(latest, node, when)
    return latest
