"""Messages one by one, for tests that look at each: the links count them in bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosshatch.network import Direction
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call, Contents, Message, Specs
from crosshatch.simulator.accounting.at_work import AtWork

Log = Callable[[Message], None]


def between_clients_and(
    log: Log,
    names: Sequence[str],
    who: AtWork,
    contents: Sequence[Contents],
    rows: Ids,
    direction: Direction,
    call: Call,
    link: str,
) -> None:
    """Messages between clients and whoever is above them, about so many rows each; none about 0 rows."""
    for j, clients, where, one in zip(who.silos, who.clients, who.places(), contents, strict=True):
        for client, n in zip(clients, rows[where], strict=True):
            if n:
                above = names[j] if link == "client-hub" else "server"
                _log(log, f"{names[j]}/{client}", above, direction, call, one(int(n)))


def between_hubs(
    log: Log,
    names: Sequence[str],
    senders: Sequence[int],
    receivers: Sequence[int],
    specs: Sequence[Specs],
    down: bool,
    call: Call,
) -> None:
    """Messages from every sender to every receiver but itself."""
    for i, sender in enumerate(senders):
        for k, receiver in enumerate(receivers):
            if sender != receiver:
                _log(log, names[sender], names[receiver], "up", call, specs[k if down else i])


def hub_and_server(log: Log, name: str, specs: Specs, direction: Direction, call: Call, pairs: Ids | None) -> None:
    """A message between a hub and the server, or one for each of its pairs."""
    for hub in [name] if pairs is None else [f"{name}/{one}" for one in pairs]:
        _log(log, hub, "server", direction, call, specs)


def _log(log: Log, below: str, above: str, direction: Direction, call: Call, specs: Specs) -> None:
    sender, receiver = (below, above) if direction == "up" else (above, below)
    log((sender, receiver, call.round, call.exchange, call.use, specs))
