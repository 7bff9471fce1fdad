"""The messages of a round: what each exchange puts on which link, counted and timed.

Sizes come from the wire format. Whoever receives waits for its slowest sender. Where a silo is a single party there is
no link between hub and client, and where all is on one machine (central training) there are no messages at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Direction, Network

Ids = npt.NDArray[np.int64]
Message = tuple[str, str, int, str, int, tuple[tuple[int, ...], ...]]
"""Sender, receiver, round, exchange, step, shapes: everything that decides a message's bytes but its numbers."""
Shapes = Callable[[int], tuple[tuple[int, ...], ...]]
"""Shapes of the tensors in a message about so many rows."""


@dataclass
class Traffic:
    """Links between the parties of a federation; `log`, if given, is called with every message (for tests)."""

    silos: Sequence[str]
    network: Network
    dtype: torch.dtype
    meter: Meter
    clocks: Clocks
    free: bool = False
    single: frozenset[int] = frozenset()  # silos that are one party: the hub is the client
    together: bool = False  # the hubs of a group are one party: devices talk to their hospital
    log: Callable[[Message], None] | None = None

    def clients_to_hub(self, silo: int, clients: Ids, rows: Ids, shapes: Shapes, call: Call) -> None:
        """Every client with rows sends its hub one message; the hub waits for the last."""
        if self.free or silo in self.single:
            return
        sizes = self._client_sizes(silo, clients, rows, shapes, call, "up")
        seconds = self.network.transfer("client-hub", "up", sizes, self.silos[silo], clients)
        if (rows > 0).any():
            arrival = (self.clocks.clients[silo] + seconds)[rows > 0].max()
            self.clocks.hubs[silo] = max(self.clocks.hubs[silo], arrival)

    def hub_to_clients(self, silo: int, clients: Ids, rows: Ids, shapes: Shapes, call: Call) -> None:
        """The hub sends every client with rows one message."""
        if self.free or silo in self.single:
            return
        sizes = self._client_sizes(silo, clients, rows, shapes, call, "down")
        seconds = self.network.transfer("client-hub", "down", sizes, self.silos[silo], clients)
        before = self.clocks.clients.get(silo)
        arrival = self.clocks.hubs[silo] + seconds
        self.clocks.clients[silo] = (
            arrival if before is None else np.where(rows > 0, np.maximum(before, arrival), before)
        )

    def hub_to_hubs(
        self,
        sender: int,
        receivers: Sequence[int],
        shapes: tuple[tuple[int, ...], ...],
        direction: Direction,
        call: Call,
    ) -> dict[int, float]:
        """One hub sends the same to others; returns when it arrives, for `wait`."""
        if self.free or not receivers:
            return {}
        if self.together:
            return {receiver: float(self.clocks.hubs[sender]) for receiver in receivers}
        size = self._size(shapes, call)
        self.meter.count(f"hub-hub {direction}", call.exchange, messages=len(receivers), size=size * len(receivers))
        if self.log:
            for receiver in receivers:
                self.log((self.silos[sender], self.silos[receiver], call.round, call.exchange, call.step, shapes))
        seconds = self.network.transfer("hub-hub", direction, np.array([size]), self.silos[sender], None)[0]
        return {receiver: float(self.clocks.hubs[sender] + seconds) for receiver in receivers}

    def wait(self, arrivals: Sequence[dict[int, float]]) -> None:
        """Hubs take what was sent to them: each is as late as its last message."""
        for arrival in arrivals:
            for hub, when in arrival.items():
                self.clocks.hubs[hub] = max(self.clocks.hubs[hub], when)

    def hub_to_server(self, silo: int, numbers: int, messages: int, call: Call) -> float:
        """A hub sends the server so many blocks of so many numbers; returns when they are there."""
        self.clocks.hubs[silo] += self._server_leg(silo, numbers, messages, "up", call)
        return float(self.clocks.hubs[silo])

    def server_to_hub(self, silo: int, numbers: int, messages: int, call: Call) -> None:
        """The server sends a hub so many blocks."""
        self.clocks.hubs[silo] += self._server_leg(silo, numbers, messages, "down", call)

    def _server_leg(self, silo: int, numbers: int, messages: int, direction: Direction, call: Call) -> float:
        shapes = ((numbers,),)
        size = self._size(shapes, call) * messages
        self.meter.count(f"group-server {direction}", call.exchange, messages=messages, size=size)
        if self.log:
            ends = (self.silos[silo], "server")
            sender, receiver = ends if direction == "up" else ends[::-1]
            for _ in range(messages):
                self.log((sender, receiver, call.round, call.exchange, call.step, shapes))
        return float(self.network.transfer("group-server", direction, np.array([size]), self.silos[silo], None)[0])

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
        self, silo: int, clients: Ids, rows: Ids, shapes: Shapes, call: Call, direction: Direction
    ) -> Ids:
        """Bytes of each client's message; a client with no rows takes no part."""
        distinct, which = np.unique(rows, return_inverse=True)
        sizes: Ids = np.array([self._size(shapes(int(n)), call) if n else 0 for n in distinct])[which]
        sent = int((rows > 0).sum())
        if sent:
            self.meter.count(f"client-hub {direction}", call.exchange, messages=sent, size=int(sizes.sum()))
        if self.log:
            for client, n in zip(clients, rows, strict=True):
                if n:
                    ends = (f"{self.silos[silo]}/{client}", self.silos[silo])
                    sender, receiver = ends if direction == "up" else ends[::-1]
                    self.log((sender, receiver, call.round, call.exchange, call.step, shapes(int(n))))
        return sizes

    def _size(self, shapes: tuple[tuple[int, ...], ...], call: Call) -> int:
        return wire.size(call.round, call.exchange, tuple((self.dtype, shape) for shape in shapes), step=call.step)


@dataclass(frozen=True)
class Call:
    """One use of an exchange: its name, the round, and the local step for exchanges within a round."""

    exchange: str
    round: int
    step: int = 0
