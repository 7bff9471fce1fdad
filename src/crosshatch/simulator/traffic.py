"""The messages of a round: what each exchange puts on which link, counted and timed.

Sizes come from the wire format. Whoever receives waits for its slowest sender. Where a silo is a single party there is
no link between hub and client, and where all is on one machine (central training) there are no messages at all.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Direction, Network, Seconds

Ids = npt.NDArray[np.int64]
Specs = tuple[tuple[torch.dtype, tuple[int, ...]], ...]
"""Types and shapes of the tensors in a message."""
Message = tuple[str, str, int, str, int, Specs]
"""Sender, receiver, round, exchange, step, tensors: everything that decides a message's bytes but its numbers."""
Contents = Callable[[int], Specs]
"""The tensors in a message about so many rows."""

_LONGER = (128, 256, 2**16, 2**32)
"""From these numbers on a header's integer takes more bytes."""


@dataclass
class Traffic:
    """Links between the parties of a federation; `log`, if given, is called with every message (for tests)."""

    silos: Sequence[str]
    network: Network
    meter: Meter
    clocks: Clocks
    free: bool = False
    single: frozenset[int] = frozenset()  # silos that are one party: the hub is the client
    together: bool = False  # the hubs of a group are one party: devices talk to their hospital
    log: Callable[[Message], None] | None = None
    _tables: dict[tuple[object, ...], Ids] = field(default_factory=dict, repr=False)

    def clients_to_hub(self, silo: int, clients: Ids, rows: Ids, contents: Contents, call: Call) -> None:
        """Every client with rows sends its hub one message; the hub waits for the last."""
        if self.free or silo in self.single:
            return
        arrivals = self.clients_to_node(silo, clients, rows, contents, call)
        self.clocks.hubs[silo] = arrivals.max(initial=self.clocks.hubs[silo])

    def clients_to_node(self, silo: int, clients: Ids, rows: Ids, contents: Contents, call: Call) -> Seconds:
        """Every client with rows sends one message up; returns when they arrive."""
        sizes = self._client_sizes(silo, clients, rows, contents, call, "up")
        seconds = self.network.transfer("client-hub", "up", sizes, self.silos[silo], clients)
        arrivals: Seconds = (self.clocks.clients[silo] + seconds)[rows > 0]
        return arrivals

    def hub_to_clients(self, silo: int, clients: Ids, rows: Ids, contents: Contents, call: Call) -> None:
        """The hub sends every client with rows one message."""
        if not (self.free or silo in self.single):
            self.node_to_clients(silo, clients, rows, contents, call, self.clocks.hubs[silo])

    def node_to_clients(
        self, silo: int, clients: Ids, rows: Ids, contents: Contents, call: Call, when: Seconds | float
    ) -> None:
        """Whoever is above a client sends it one message at time `when`."""
        sizes = self._client_sizes(silo, clients, rows, contents, call, "down")
        seconds = self.network.transfer("client-hub", "down", sizes, self.silos[silo], clients)
        before = self.clocks.clients.get(silo)
        arrival = when + seconds
        self.clocks.clients[silo] = (
            arrival if before is None else np.where(rows > 0, np.maximum(before, arrival), before)
        )

    def hub_to_hubs(
        self,
        sender: int,
        receivers: Sequence[int],
        specs: Specs,
        direction: Direction,
        call: Call,
    ) -> dict[int, float]:
        """One hub sends the same to others; returns when it arrives, for `wait`."""
        if self.free or not receivers:
            return {}
        if self.together:
            return {receiver: float(self.clocks.hubs[sender]) for receiver in receivers}
        size = self._size(specs, call)
        self.meter.count(f"hub-hub {direction}", call.exchange, messages=len(receivers), size=size * len(receivers))
        if self.log:
            for receiver in receivers:
                self.log((self.silos[sender], self.silos[receiver], call.round, call.exchange, call.step, specs))
        sizes = np.array([size])
        if direction == "down":  # over the link of who gets it
            ends = {receiver: self.silos[receiver] for receiver in receivers}
            seconds = {r: self.network.transfer("hub-hub", direction, sizes, name, None)[0] for r, name in ends.items()}
        else:
            own = self.network.transfer("hub-hub", direction, sizes, self.silos[sender], None)[0]
            seconds = dict.fromkeys(receivers, own)
        return {receiver: float(self.clocks.hubs[sender] + seconds[receiver]) for receiver in receivers}

    def wait(self, arrivals: Sequence[dict[int, float]]) -> None:
        """Hubs take what was sent to them: each is as late as its last message."""
        for arrival in arrivals:
            for hub, when in arrival.items():
                self.clocks.hubs[hub] = max(self.clocks.hubs[hub], when)

    def hub_to_server(self, silo: int, specs: Specs, messages: int, call: Call) -> None:
        """A hub sends the server so many messages."""
        self.clocks.hubs[silo] += self._server_leg(silo, specs, messages, "up", call)

    def server_to_hub(self, silo: int, specs: Specs, messages: int, call: Call) -> None:
        """The server sends a hub so many messages."""
        self.clocks.hubs[silo] += self._server_leg(silo, specs, messages, "down", call)

    def _server_leg(self, silo: int, specs: Specs, messages: int, direction: Direction, call: Call) -> float:
        size = self._size(specs, call) * messages
        self.meter.count(f"group-server {direction}", call.exchange, messages=messages, size=size)
        if self.log:
            ends = (self.silos[silo], "server")
            sender, receiver = ends if direction == "up" else ends[::-1]
            for _ in range(messages):
                self.log((sender, receiver, call.round, call.exchange, call.step, specs))
        return float(self.network.transfer("group-server", direction, np.array([size]), self.silos[silo], None)[0])

    def branch_leg(self, silo: int, branches: Ids, level: int, direction: Direction, specs: Specs, call: Call) -> float:
        """One message between each of these branches and the node above it; returns the seconds it takes."""
        size, name = self._size(specs, call), self.silos[silo]
        self.meter.count(f"branch-hub {direction}", call.exchange, messages=len(branches), size=size * len(branches))
        if self.log:
            for branch in branches:
                ends = (f"{name}#{level}.{branch}", f"{name}#{level - 1}")
                sender, receiver = ends if direction == "up" else ends[::-1]
                self.log((sender, receiver, call.round, call.exchange, call.step, specs))
        return float(self.network.transfer("branch-hub", direction, np.array([size]), name, None)[0])

    def work(self, silo: int, clients: Ids, steps: Ids) -> None:
        """`steps[i]` local steps at the i-th client at work."""
        if self.free or silo in self.single:
            seconds = self.network.local_step(self.silos[silo], None)[0]
            self.clocks.hubs[silo] += float(steps.max(initial=0)) * seconds
        else:
            self.clocks.clients[silo] = self.clocks.clients[silo] + steps * self.network.local_step(
                self.silos[silo], clients
            )

    def _client_sizes(
        self, silo: int, clients: Ids, rows: Ids, contents: Contents, call: Call, direction: Direction
    ) -> Ids:
        """Bytes of each client's message; a client with no rows takes no part."""
        sizes = self._sizes(rows, contents, call)
        sent = int(np.count_nonzero(rows))
        if sent:
            self.meter.count(f"client-hub {direction}", call.exchange, messages=sent, size=int(sizes.sum()))
        if self.log:
            for client, n in zip(clients, rows, strict=True):
                if n:
                    ends = (f"{self.silos[silo]}/{client}", self.silos[silo])
                    sender, receiver = ends if direction == "up" else ends[::-1]
                    self.log((sender, receiver, call.round, call.exchange, call.step, contents(int(n))))
        return sizes

    def _sizes(self, rows: Ids, contents: Contents, call: Call) -> Ids:
        """Bytes of messages about so many rows, 0 for none; looked up, since the next round asks for the same ones."""
        key = (contents, call.exchange, bisect(_LONGER, call.round), bisect(_LONGER, call.step))
        table = self._tables.get(key)
        most = int(rows.max(initial=0))
        if table is None or len(table) <= most:
            wider = np.full(2 * most + 2, -1, dtype=np.int64)
            wider[: 0 if table is None else len(table)] = [] if table is None else table
            table = self._tables[key] = wider
        sizes: Ids = table[rows]
        if sizes.min(initial=0) < 0:
            for n in np.unique(rows):
                table[n] = self._size(contents(int(n)), call) if n else 0
            sizes = table[rows]
        return sizes

    def _size(self, specs: Specs, call: Call) -> int:
        return wire.size(call.round, call.exchange, specs, step=call.step)


@dataclass(frozen=True)
class Call:
    """One use of an exchange: its name, the round, and the local step for exchanges within a round."""

    exchange: str
    round: int
    step: int = 0
