"""Messages one by one, for tests that look at each: the links count them in bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosshatch.network import Direction
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call, Message, Specs
from crosshatch.simulator.accounting.legs import AtWork, ClientLeg, HubLeg

Log = Callable[[Message], None]


def between_clients_and(log: Log, names: Sequence[str], who: AtWork, leg: ClientLeg, rows: Ids) -> None:
    """Messages between clients and whoever is above them, about so many rows each; none about 0 rows."""
    for j, clients, where, one in zip(who.silos, who.clients, who.places, leg.contents, strict=True):
        for client, n in zip(clients, rows[where], strict=True):
            if n:
                above = names[j] if leg.link == "client-hub" else "server"
                _log(log, f"{names[j]}/{client}", above, leg.direction, leg.call, one(int(n)))


def between_hubs(log: Log, names: Sequence[str], leg: HubLeg) -> None:
    """Messages from every sender to every receiver but itself."""
    for i, sender in enumerate(leg.senders):
        for k, receiver in enumerate(leg.receivers):
            if sender != receiver:
                specs = leg.specs[k if leg.direction == "down" else i]
                _log(log, names[sender], names[receiver], "up", leg.call, specs)


def hub_and_server(log: Log, name: str, specs: Specs, direction: Direction, call: Call, pairs: Ids | None) -> None:
    """A message between a hub and the server, or one for each of its pairs."""
    for hub in [name] if pairs is None else [f"{name}/{one}" for one in pairs]:
        _log(log, hub, "server", direction, call, specs)


def _log(log: Log, below: str, above: str, direction: Direction, call: Call, specs: Specs) -> None:
    sender, receiver = (below, above) if direction == "up" else (above, below)
    log((sender, receiver, call.round, call.exchange, call.use, specs))
