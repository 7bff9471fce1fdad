"""The messages of a round: what each exchange puts on which link, counted and timed.

Sizes come from the wire format. Whoever receives waits for its slowest sender. Where a silo is a single party there is
no link between hub and client, and where all is on one machine (central training) there are no messages at all. The
messages of all silos in an exchange are counted together: one by one they would cost more than the training.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import mul
from typing import Literal

import numpy as np
import numpy.typing as npt

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Direction, Network, Seconds
from crosshatch.protocol.contents import Always, Call, Contents, Message, Specs
from crosshatch.simulator.vertical.batch import Crowd

Ids = npt.NDArray[np.int64]
ClientLink = Literal["client-hub", "client-server"]
_LONGER = (128, 256, 2**16, 2**32)
"""From these numbers on a header's integer takes more bytes."""
_UNKNOWN = -(2**40)  # a size not yet looked up: more than the messages of an exchange together
_ANYBODY = ""  # to the network: a party without settings of its own


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
    _uses: Counter[str] = field(default_factory=Counter, repr=False)  # of each exchange in this round
    _tables: dict[tuple[object, ...], Ids] = field(default_factory=dict, repr=False)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict, repr=False)  # sizes of messages

    def begin_round(self) -> None:
        """No exchange was used yet."""
        self._uses.clear()

    def call(self, exchange: str, round: int) -> Call:
        """The next use of an exchange: every party counts the same, since all run the same text."""
        self._uses[exchange] += 1
        return Call(exchange, round, self._uses[exchange] - 1)

    def linked(self, silos: Iterable[int]) -> list[int]:
        """Those of the silos whose clients have a link to their hub."""
        return [] if self.free else [j for j in silos if j not in self.single]

    def clients_to_hubs(
        self, crowd: Crowd, contents: Sequence[Contents], call: Call, rows: Ids | None = None,
        link: ClientLink = "client-hub",
    ) -> None:  # fmt: skip
        """Clients send their hub (or the server, in its place) one message each; it waits for the last.

        `contents` are by silo. Messages are about all rows of a client or so many; a client with 0 sends none.
        """
        if crowd.silos:
            last = np.maximum.reduceat(self.clients_to_nodes(crowd, contents, call, rows, link), crowd.begins[:-1])
            self.clocks.hubs[crowd.hubs] = np.maximum(self.clocks.hubs[crowd.hubs], last)

    def clients_to_nodes(
        self, crowd: Crowd, contents: Sequence[Contents], call: Call, rows: Ids | None = None,
        link: ClientLink = "client-hub",
    ) -> Seconds:  # fmt: skip
        """Clients send one message each to whoever is above them; when it arrives, minus infinity where none does."""
        arrivals: Seconds = self.clocks.clients[crowd.where] + self._carry(crowd, contents, rows, "up", call, link)
        if rows is not None:
            arrivals[rows == 0] = -np.inf
        return arrivals

    def hubs_to_clients(
        self, crowd: Crowd, contents: Sequence[Contents], call: Call, rows: Ids | None = None,
        link: ClientLink = "client-hub",
    ) -> None:  # fmt: skip
        """Hubs (or the server, in their place) send their clients one message each, as above."""
        if crowd.silos:
            when = self.clocks.hubs[crowd.hubs].repeat(crowd.lengths)
            self.nodes_to_clients(crowd, contents, call, when, rows, link)

    def nodes_to_clients(
        self, crowd: Crowd, contents: Sequence[Contents], call: Call, when: Seconds, rows: Ids | None = None,
        link: ClientLink = "client-hub",
    ) -> None:  # fmt: skip
        """Whoever is above a client sends it one message, at its time `when`."""
        before = self.clocks.clients[crowd.where]
        now = np.maximum(before, when + self._carry(crowd, contents, rows, "down", call, link))
        if rows is not None:
            now = np.where((rows > 0) | np.isinf(before), now, before)
        self.clocks.clients[crowd.where] = now

    def hubs_to_hubs(
        self, senders: Sequence[int], receivers: Sequence[int], specs: Sequence[Specs], direction: Direction, call: Call
    ) -> None:
        """Every sender to every receiver but itself; who receives waits for the last.

        `specs[i]` is what the i-th sender sends or, `down`, what the i-th receiver gets.
        """
        if self.free or not senders or not receivers:
            return
        arrivals = self.clocks.hubs[senders][:, np.newaxis] + _never_to_itself(tuple(senders), tuple(receivers))
        if not self.together:
            down = direction == "down"
            ends = receivers if down else senders  # over whose link it goes
            times = [len(senders if down else receivers) - (j in (senders if down else receivers)) for j in ends]
            each = [self._size(one, call) for one in specs]
            size = sum(map(mul, each, times))
            self.meter.count(f"hub-hub {direction}", call.exchange, messages=sum(times), size=size)
            sizes = np.array(each)
            seconds = self.network.transfer("hub-hub", direction, sizes, _ANYBODY, None)
            for i, j in enumerate(ends) if self._special else ():
                if self.silos[j] in self._special:
                    seconds[i] = self.network.transfer("hub-hub", direction, sizes[i : i + 1], self.silos[j], None)[0]
            arrivals += seconds if down else seconds[:, np.newaxis]
            self._log_hubs(senders, receivers, specs, down, call)
        self.clocks.hubs[receivers] = np.maximum(self.clocks.hubs[receivers], np.maximum.reduce(arrivals))

    def hub_to_server(self, silo: int, specs: Specs, call: Call, pairs: Ids | None = None) -> None:
        """A hub sends the server a message, or one for each of these pairs of its own and a device's block."""
        self.clocks.hubs[silo] += self._server_leg(silo, specs, pairs, "up", call)

    def server_to_hub(self, silo: int, specs: Specs, call: Call, pairs: Ids | None = None) -> None:
        """The server sends a hub a message, or one for each pair."""
        self.clocks.hubs[silo] += self._server_leg(silo, specs, pairs, "down", call)

    def _server_leg(self, silo: int, specs: Specs, pairs: Ids | None, direction: Direction, call: Call) -> float:
        messages = 1 if pairs is None else len(pairs)
        size = self._size(specs, call) * messages
        self.meter.count(f"group-server {direction}", call.exchange, messages=messages, size=size)
        if self.log:
            name = self.silos[silo]
            for hub in [name] if pairs is None else [f"{name}/{one}" for one in pairs]:
                sender, receiver = (hub, "server") if direction == "up" else ("server", hub)
                self.log((sender, receiver, call.round, call.exchange, call.use, specs))
        return float(self.network.transfer("group-server", direction, np.array([size]), self.silos[silo], None)[0])

    def branch_leg(self, silo: int, branches: Ids, level: int, direction: Direction, specs: Specs, call: Call) -> float:
        """One message between each of these branches and the node above it; returns the seconds it takes."""
        size, name = self._size(specs, call), self.silos[silo]
        self.meter.count(f"branch-hub {direction}", call.exchange, messages=len(branches), size=size * len(branches))
        if self.log:
            for branch in branches:
                ends = (f"{name}#{level}.{branch}", f"{name}#{level - 1}")
                sender, receiver = ends if direction == "up" else ends[::-1]
                self.log((sender, receiver, call.round, call.exchange, call.use, specs))
        return float(self.network.transfer("branch-hub", direction, np.array([size]), name, None)[0])

    def work(self, crowd: Crowd, steps: int | Ids) -> None:
        """So many local steps at each of the clients."""
        if isinstance(steps, int) and not (self.free or self.single or self._special):
            self.clocks.clients[crowd.where] += steps * self._usual_step
            return
        each: Ids = np.full(len(crowd.rows), steps) if isinstance(steps, int) else steps
        for j, where in zip(crowd.silos, crowd.places(), strict=True) if self.free or self.single else ():
            if self.free or j in self.single:
                # A hospital of pairs trains one model for each of its devices, one after the other.
                steps_here = each[where].sum() if self.together else each[where].max(initial=0)
                self.clocks.hubs[j] += float(steps_here) * self.network.local_step(self.silos[j], None)[0]
        if self.free or len(self.single) == len(self.silos):
            return
        taken = each * self._usual_step
        for name, clients, where in self._with_settings(crowd):
            taken[where] = each[where] * self.network.local_step(name, clients)
        self.clocks.clients[crowd.where] += taken

    @cached_property
    def _special(self) -> frozenset[str]:
        """Silos with settings of their own in the network, or with such a client."""
        return frozenset(name.rpartition("/")[0] if "/" in name else name for name in self.network.named)

    @cached_property
    def _usual_step(self) -> Seconds:
        return self.network.local_step(_ANYBODY, None)

    def _with_settings(self, crowd: Crowd) -> Iterator[tuple[str, Ids, slice]]:
        """Silos of the crowd with settings of their own, their clients and where these stand."""
        for j, clients, where in zip(crowd.silos, crowd.clients, crowd.places(), strict=True) if self._special else ():
            if self.silos[j] in self._special:
                yield self.silos[j], clients, where

    def _carry(
        self, crowd: Crowd, contents: Sequence[Contents], rows: Ids | None, direction: Direction, call: Call,
        link: ClientLink,
    ) -> Seconds:  # fmt: skip
        """Count the messages; how long each takes."""
        about = crowd.rows if rows is None else rows
        if rows is None and isinstance(contents[0], Always):  # then all are
            each = [self._size(one(1), call) for one in contents]
            sizes = np.array(each).repeat(crowd.lengths)
            sent, total = len(about), sum(map(mul, each, crowd.lengths))
        else:
            if contents.count(contents[0]) == len(contents):
                sizes, total = self._sizes(about, contents[0], crowd.samples, call)
            else:
                pairs = zip(crowd.places(), contents, strict=True)
                found = [self._sizes(about[where], one, crowd.samples, call) for where, one in pairs]
                sizes, total = np.concatenate([one for one, _ in found]), sum(one for _, one in found)
            sent = len(about) if rows is None else int(np.count_nonzero(rows))
        if sent:
            self.meter.count(f"{link} {direction}", call.exchange, messages=sent, size=total)
        if self.log:
            self._log_clients(self.log, crowd, contents, about, direction, call, link)
        seconds = self.network.transfer(link, direction, sizes, _ANYBODY, None)
        if self._special:
            for name, clients, where in self._with_settings(crowd):
                seconds[where] = self.network.transfer(link, direction, sizes[where], name, clients)
        return seconds

    def _sizes(self, rows: Ids, contents: Contents, most: int, call: Call) -> tuple[Ids, int]:
        """Bytes of messages about so many rows, 0 for none, and their sum.

        They are looked up, since the next round asks for the same ones.
        """
        key = (contents, call.exchange, bisect(_LONGER, call.round), bisect(_LONGER, call.use))
        table = self._tables.get(key)
        if table is None or len(table) <= most:
            wider = np.full(most + 1, _UNKNOWN, dtype=np.int64)
            wider[: 0 if table is None else len(table)] = [] if table is None else table
            table = self._tables[key] = wider
        sizes: Ids = table[rows]
        total = int(np.add.reduce(sizes))
        if total < 0:
            for n in np.unique(rows):
                table[n] = self._size(contents(int(n)), call) if n else 0
            sizes = table[rows]
            total = int(np.add.reduce(sizes))
        return sizes, total

    def _size(self, specs: Specs, call: Call) -> int:
        key = (specs, call.exchange, bisect(_LONGER, call.round), bisect(_LONGER, call.use))
        size = self._known.get(key)
        if size is None:
            size = self._known[key] = wire.size(call.round, call.exchange, specs, step=call.use)
        return size

    def _log_clients(
        self, log: Callable[[Message], None], crowd: Crowd, contents: Sequence[Contents], rows: Ids,
        direction: Direction, call: Call, link: ClientLink,
    ) -> None:  # fmt: skip
        for j, clients, where, one in zip(crowd.silos, crowd.clients, crowd.places(), contents, strict=True):
            for client, n in zip(clients, rows[where], strict=True):
                if n:
                    ends = (f"{self.silos[j]}/{client}", self.silos[j] if link == "client-hub" else "server")
                    sender, receiver = ends if direction == "up" else ends[::-1]
                    log((sender, receiver, call.round, call.exchange, call.use, one(int(n))))

    def _log_hubs(
        self, senders: Sequence[int], receivers: Sequence[int], specs: Sequence[Specs], down: bool, call: Call
    ) -> None:
        for i, sender in enumerate(senders) if self.log else ():
            for k, receiver in enumerate(receivers):
                if self.log and sender != receiver:
                    ends = (self.silos[sender], self.silos[receiver])
                    self.log((*ends, call.round, call.exchange, call.use, specs[k if down else i]))


@cache
def _never_to_itself(senders: tuple[int, ...], receivers: tuple[int, ...]) -> Seconds:
    """Minus infinity where sender and receiver are one, else 0."""
    return np.where(np.not_equal.outer(senders, receivers), 0.0, -np.inf)
