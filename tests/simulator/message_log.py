"""Messages one by one, for tests that look at each: the links count them in bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crosshatch.network import Direction, Seconds
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call, Specs
from crosshatch.simulator.accounting.agent_links import AgentLinks
from crosshatch.simulator.accounting.branch_accounts import BranchAccounts
from crosshatch.simulator.accounting.legs import ClientLeg, HubLeg
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer

Message = tuple[str, str, int, str, int, Specs]
"""Sender, receiver, round, exchange, use, tensors: everything that decides a message's bytes but its numbers."""
Log = Callable[[Message], None]


def log_messages(simulator: Simulator) -> list[Message]:
    """Every message from now on, as it is sent."""
    messages: list[Message] = []
    federation = simulator.federation
    if isinstance(federation, SimulatedFederation | SimulatedServer):
        for group in federation.groups if isinstance(federation, SimulatedServer) else (federation,):
            _log_links(group.accounts.links, messages.append)
    else:
        _log_agents(federation.links, messages.append)
    return messages


def _log_links(links: Links, log: Log) -> None:
    send, hubs_and_server = links.send, links.hubs_and_server

    def sends(batch: Batch | None, *legs: ClientLeg | HubLeg) -> Seconds:
        arrivals = send(batch, *legs)
        for leg in legs:
            if isinstance(leg, HubLeg):
                _between_hubs(links, leg, log)
            elif leg.silos:
                assert batch is not None
                _between_clients_and(links, batch, leg, log)
        return arrivals

    def serves(
        silos: Sequence[int], specs: Sequence[Specs], direction: Direction, call: Call, pairs: Ids | None = None
    ) -> None:
        hubs_and_server(silos, specs, direction, call, pairs)
        for j, one in zip(silos, specs, strict=True):
            name = links.silos[j]
            for hub in [name] if pairs is None else [f"{name}/{pair}" for pair in pairs]:
                _log(log, hub, "server", direction, call, one)

    vars(links).update(send=sends, hubs_and_server=serves, log=log)


_leg = BranchAccounts._leg


def _logged_leg(
    self: BranchAccounts, silo: int, clients: Ids, level: int, direction: Any, specs: Specs, call: Call
) -> float:
    """Between branches and the nodes above them: only here their level is known."""
    log: Any = vars(self.accounts.links).get("log")
    name = self.accounts.links.silos[silo]
    for branch in np.unique(self.branches.of(silo, clients, level)) if log else ():
        _log(log, f"{name}#{level}.{branch}", f"{name}#{level - 1}", direction, call, specs)
    return _leg(self, silo, clients, level, direction, specs, call)


BranchAccounts._leg = _logged_leg  # type: ignore[method-assign]


def _between_clients_and(links: Links, batch: Batch, leg: ClientLeg, log: Log) -> None:
    """Messages between clients and whoever is above them; none about 0 rows."""
    who = links._find(batch, leg.silos)
    rows = who.rows if leg.rows is None else leg.rows
    for j, clients, where, one in zip(who.silos, who.clients, who.places, leg.contents, strict=True):
        for client, n in zip(clients, rows[where], strict=True):
            if n:
                above = links.silos[j] if leg.link == "client-hub" else "server"
                _log(log, f"{links.silos[j]}/{client}", above, leg.direction, leg.call, one(int(n)))


def _between_hubs(links: Links, leg: HubLeg, log: Log) -> None:
    """Messages from every sender to every receiver but itself."""
    if links.one_machine or links.hubs_together:
        return
    for i, sender in enumerate(leg.senders):
        for k, receiver in enumerate(leg.receivers):
            if sender != receiver:
                specs = leg.specs[k if leg.direction == "down" else i]
                _log(log, links.silos[sender], links.silos[receiver], "up", leg.call, specs)


def _log(log: Log, below: str, above: str, direction: Direction, call: Call, specs: Specs) -> None:
    sender, receiver = (below, above) if direction == "up" else (above, below)
    log((sender, receiver, call.round, call.exchange, call.use, specs))


def _log_agents(links: AgentLinks, log: Log) -> None:
    send, ask_server, content = links.send, links.ask_server, ((links.dtype, links.shape),)

    def sends(senders: Any, receivers: Any, exchange: str, *, round: int, steps: Any, mutual: bool = False) -> Any:
        for a, b, step in zip(senders, receivers, steps, strict=True):
            log((links.agents[a], links.agents[b], round, exchange, step, content))
        return send(senders, receivers, exchange, round=round, steps=steps, mutual=mutual)

    def asks(senders: Any, ready: Any, receivers: Any, exchange: str, *, round: int) -> Any:
        for step, agent in enumerate(senders):
            log((links.agents[agent], "server", round, exchange, step, content))
        for step, agent in enumerate(receivers):
            log(("server", links.agents[agent], round, exchange, step, content))
        return ask_server(senders, ready, receivers, exchange, round=round)

    vars(links).update(send=sends, ask_server=asks)
