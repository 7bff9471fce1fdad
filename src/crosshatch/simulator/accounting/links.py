"""The links between the parties of a federation: what messages cost on them, in bytes and in seconds.

Sizes come from the wire format. Whoever receives waits for its slowest sender. Where a silo is a single party there is
no link between hub and client, and where all is on one machine (central training) there are no messages at all. The
messages of all silos in an exchange are counted together: one by one they would cost more than the training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from operator import mul
from typing import Literal

import numpy as np

from crosshatch import wire
from crosshatch.local.local_steps import LocalSteps
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Direction, Network, Seconds
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Always, Call, Contents, Message, Specs
from crosshatch.simulator.accounting.at_work import AtWork
from crosshatch.simulator.accounting.message_log import between_clients_and, between_hubs, hub_and_server
from crosshatch.simulator.vertical.batch import Batch

ClientLink = Literal["client-hub", "client-server"]
_UNKNOWN = -(2**40)  # a size not yet looked up: more than the messages of an exchange together
_ANYBODY = ""  # to the network: a party without settings of its own


@dataclass
class Links:
    """Links between the parties of a federation; `log`, if given, is called with every message (for tests)."""

    silos: Sequence[str]
    network: Network
    meter: Meter
    clocks: Clocks
    one_machine: bool = False  # everybody's samples lie in one place: nothing is sent
    one_party: frozenset[int] = frozenset()  # silos that are one party: the hub is the client
    hubs_together: bool = False  # the hubs of a group are one party: devices talk to their hospital
    log: Callable[[Message], None] | None = None
    _clients: Sequence[Ids] = field(default=(), repr=False)  # of the batch that `_at_work` and the clocks are about
    _clocks: dict[int, tuple[Sequence[Ids], Seconds]] = field(default_factory=dict, repr=False)  # by batch, this round
    _at_work: dict[tuple[int, ...], AtWork] = field(default_factory=dict, repr=False)
    _tables: dict[tuple[object, ...], Ids] = field(default_factory=dict, repr=False)  # sizes of messages by rows

    def begin_round(self) -> None:
        """Clients' clocks are those of a round."""
        self._clocks.clear()
        self._clients = ()

    def begin(self, batch: Batch) -> None:
        """Work on a batch begins: its clients got nothing yet."""
        self._clocks[id(batch.clients)] = batch.clients, np.full(sum(map(len, batch.clients)), -np.inf)
        self._clients = ()

    def _turn_to(self, batch: Batch) -> None:
        """Clients' clocks are those of the batch's; of one from an earlier round they begin as their hubs' are."""
        self._clients = batch.clients
        self._at_work.clear()
        if id(batch.clients) not in self._clocks:
            self._clocks[id(batch.clients)] = batch.clients, self.clocks.hubs.repeat(list(map(len, batch.clients)))
        self.clocks.clients = self._clocks[id(batch.clients)][1]

    def _find(self, batch: Batch, silos: tuple[int, ...]) -> AtWork:
        """The clients at work of these silos, given in ascending order."""
        if batch.clients is not self._clients:
            self._turn_to(batch)
        if silos not in self._at_work:
            clients = [batch.clients[j] for j in silos]
            lengths = [len(mine) for mine in clients]
            begins = np.array([0, *accumulate(lengths)])
            hubs: slice | list[int] = slice(None)
            where: slice | Ids = slice(None)
            if len(silos) < len(batch.clients):
                hubs = list(silos)
                silo = np.repeat(np.arange(len(batch.clients)), list(map(len, batch.clients)))
                where = np.flatnonzero(np.isin(silo, silos))
            rows, samples = batch.counts(silos), batch.rows
            self._at_work[silos] = AtWork(silos, clients, rows, samples, lengths, begins, hubs, where)
        return self._at_work[silos]

    def clients_to_hubs(
        self, batch: Batch, silos: tuple[int, ...], contents: Sequence[Contents], call: Call, rows: Ids | None = None,
        link: ClientLink = "client-hub",
    ) -> None:  # fmt: skip
        """Clients send their hub (or the server, in its place) one message each; it waits for the last.

        `contents` are by silo. Messages are about all rows of a client or so many; a client with 0 sends none.
        """
        if silos:
            at_work = self._find(batch, silos)
            arrivals = self._send_up(at_work, contents, call, rows, link)
            last = np.maximum.reduceat(arrivals, at_work.begins[:-1])
            self.clocks.hubs[at_work.hubs] = np.maximum(self.clocks.hubs[at_work.hubs], last)

    def client_to_node(self, batch: Batch, silo: int, contents: Contents, call: Call) -> Seconds:
        """A silo's clients send one message each to whoever is above them; when it arrives."""
        return self._send_up(self._find(batch, (silo,)), [contents], call, None, "client-hub")

    def _send_up(
        self, at_work: AtWork, contents: Sequence[Contents], call: Call, rows: Ids | None, link: ClientLink
    ) -> Seconds:
        """When each client's message arrives, minus infinity where it sends none."""
        arrivals: Seconds = self.clocks.clients[at_work.where] + self._carry(at_work, contents, rows, "up", call, link)
        if rows is not None:
            arrivals[rows == 0] = -np.inf
        return arrivals

    def hubs_to_clients(
        self, batch: Batch, silos: tuple[int, ...], contents: Sequence[Contents], call: Call, rows: Ids | None = None,
        link: ClientLink = "client-hub",
    ) -> None:  # fmt: skip
        """Hubs (or the server, in their place) send their clients one message each, as above."""
        if silos:
            at_work = self._find(batch, silos)
            when = self.clocks.hubs[at_work.hubs].repeat(at_work.lengths)
            self._send_down(at_work, contents, call, when, rows, link)

    def node_to_client(self, batch: Batch, silo: int, contents: Contents, call: Call, when: Seconds) -> None:
        """Whoever is above a silo's clients sends each of them one message, at its time `when`."""
        self._send_down(self._find(batch, (silo,)), [contents], call, when, None, "client-hub")

    def _send_down(
        self, at_work: AtWork, contents: Sequence[Contents], call: Call, when: Seconds, rows: Ids | None,
        link: ClientLink,
    ) -> None:  # fmt: skip
        before = self.clocks.clients[at_work.where]
        now = np.maximum(before, when + self._carry(at_work, contents, rows, "down", call, link))
        if rows is not None:
            now = np.where((rows > 0) | np.isinf(before), now, before)  # who gets nothing begins when others are told
        self.clocks.clients[at_work.where] = now

    def hubs_to_hubs(
        self, senders: Sequence[int], receivers: Sequence[int], specs: Sequence[Specs], direction: Direction, call: Call
    ) -> None:
        """Every sender to every receiver but itself; who receives waits for the last.

        `specs[i]` is what the i-th sender sends or, `down`, what the i-th receiver gets.
        """
        if self.one_machine or not senders or not receivers:
            return
        arrivals = self.clocks.hubs[senders][:, np.newaxis] + _never_to_itself(tuple(senders), tuple(receivers))
        if not self.hubs_together:
            down = direction == "down"
            ends = receivers if down else senders  # over whose link it goes
            times = [len(senders if down else receivers) - (j in (senders if down else receivers)) for j in ends]
            each = [_size(one, call) for one in specs]
            size = sum(map(mul, each, times))
            self.meter.count(f"hub-hub {direction}", call.exchange, messages=sum(times), size=size)
            seconds = self._hubs_seconds("hub-hub", ends, np.array(each), direction)
            arrivals += seconds if down else seconds[:, np.newaxis]
            if self.log:
                between_hubs(self.log, self.silos, senders, receivers, specs, down, call)
        self.clocks.hubs[receivers] = np.maximum(self.clocks.hubs[receivers], np.maximum.reduce(arrivals))

    def hubs_and_server(
        self, silos: Sequence[int], specs: Sequence[Specs], direction: Direction, call: Call, pairs: Ids | None = None
    ) -> None:
        """Hubs and the server send each other a message, or one for each of a hub's pairs of its own and a device's."""
        messages = 1 if pairs is None else len(pairs)
        sizes = np.array([_size(one, call) * messages for one in specs])
        self.meter.count(
            f"group-server {direction}", call.exchange, messages=messages * len(silos), size=int(sizes.sum())
        )
        if self.log:
            for j, one in zip(silos, specs, strict=True):
                hub_and_server(self.log, self.silos[j], one, direction, call, pairs)
        self.clocks.hubs[list(silos)] += self._hubs_seconds("group-server", silos, sizes, direction)

    def _hubs_seconds(self, link: str, silos: Sequence[int], sizes: Ids, direction: Direction) -> Seconds:
        """How long each hub's message takes, or all those it sends together."""
        seconds = self.network.transfer(link, direction, sizes, _ANYBODY, None)
        for i, j in enumerate(silos) if self._special else ():
            if self.silos[j] in self._special:
                seconds[i] = self.network.transfer(link, direction, sizes[i : i + 1], self.silos[j], None)[0]
        return seconds

    def branch_leg(self, silo: int, branches: Ids, level: int, direction: Direction, specs: Specs, call: Call) -> float:
        """One message between each of these branches and the node above it; returns the seconds it takes."""
        size, name = _size(specs, call), self.silos[silo]
        self.meter.count(f"branch-hub {direction}", call.exchange, messages=len(branches), size=size * len(branches))
        if self.log:
            for branch in branches:
                ends = (f"{name}#{level}.{branch}", f"{name}#{level - 1}")
                sender, receiver = ends if direction == "up" else ends[::-1]
                self.log((sender, receiver, call.round, call.exchange, call.use, specs))
        return float(self.network.transfer("branch-hub", direction, np.array([size]), name, None)[0])

    def work(self, batch: Batch, silos: tuple[int, ...], local: LocalSteps, rows: Sequence[Ids] | None = None) -> None:
        """So many local steps at each of the clients.

        `rows` are the samples of each part at every client: one without samples for a step rests. None: nobody rests.
        """
        at_work, steps = self._find(batch, silos), local.steps
        if rows is None and not (self.one_machine or self.one_party or self._special):
            self.clocks.clients[at_work.where] += steps * self._usual_step
            return
        each: Ids = np.full(len(at_work.rows), steps)
        if rows is not None:
            each = np.sum([rows[(local.first + q) % len(rows)] > 0 for q in range(steps)], axis=0)
        for j, where in zip(silos, at_work.places(), strict=True) if self.one_machine or self.one_party else ():
            if self.one_machine or j in self.one_party:
                # A hospital of pairs trains one model for each of its devices, one after the other.
                steps_here = each[where].sum() if self.hubs_together else each[where].max(initial=0)
                self.clocks.hubs[j] += float(steps_here) * self.network.local_step(self.silos[j], None)[0]
        if self.one_machine or len(self.one_party) == len(self.silos):
            return
        taken = each * self._usual_step
        for name, clients, where in self._with_settings(at_work):
            taken[where] = each[where] * self.network.local_step(name, clients)
        self.clocks.clients[at_work.where] += taken

    @cached_property
    def _special(self) -> frozenset[str]:
        """Silos with settings of their own in the network, or with such a client."""
        return frozenset(name.rpartition("/")[0] if "/" in name else name for name in self.network.named)

    @cached_property
    def _usual_step(self) -> Seconds:
        return self.network.local_step(_ANYBODY, None)

    def _with_settings(self, at_work: AtWork) -> Iterator[tuple[str, Ids, slice]]:
        """Silos at work with settings of their own, their clients and where these stand."""
        for j, clients, where in (
            zip(at_work.silos, at_work.clients, at_work.places(), strict=True) if self._special else ()
        ):
            if self.silos[j] in self._special:
                yield self.silos[j], clients, where

    def _carry(
        self, at_work: AtWork, contents: Sequence[Contents], rows: Ids | None, direction: Direction, call: Call,
        link: ClientLink,
    ) -> Seconds:  # fmt: skip
        """Count the messages; how long each takes."""
        about = at_work.rows if rows is None else rows
        if rows is None and isinstance(contents[0], Always):  # then all are
            each = [_size(one.specs, call) for one in contents if isinstance(one, Always)]
            sizes = np.array(each).repeat(at_work.lengths)
            sent, total = len(about), sum(map(mul, each, at_work.lengths))
        else:
            if contents.count(contents[0]) == len(contents):
                sizes, total = self._sizes(about, contents[0], at_work.samples, call)
            else:
                pairs = zip(at_work.places(), contents, strict=True)
                found = [self._sizes(about[where], one, at_work.samples, call) for where, one in pairs]
                sizes, total = np.concatenate([one for one, _ in found]), sum(one for _, one in found)
            sent = len(about) if rows is None else int(np.count_nonzero(rows))
        if sent:
            self.meter.count(f"{link} {direction}", call.exchange, messages=sent, size=total)
        if self.log:
            between_clients_and(self.log, self.silos, at_work, contents, about, direction, call, link)
        seconds = self.network.transfer(link, direction, sizes, _ANYBODY, None)
        if self._special:
            for name, clients, where in self._with_settings(at_work):
                seconds[where] = self.network.transfer(link, direction, sizes[where], name, clients)
        return seconds

    def _sizes(self, rows: Ids, contents: Contents, most: int, call: Call) -> tuple[Ids, int]:
        """Bytes of messages about so many rows, 0 for none, and their sum.

        They are looked up, since the next round asks for the same ones.
        """
        key = (contents, call.exchange, wire.as_long(call.round), wire.as_long(call.use))
        table = self._tables.get(key)
        if table is None or len(table) <= most:
            wider = np.full(most + 1, _UNKNOWN, dtype=np.int64)
            wider[: 0 if table is None else len(table)] = [] if table is None else table
            table = self._tables[key] = wider
        sizes: Ids = table[rows]
        total = int(np.add.reduce(sizes))
        if total < 0:
            for n in np.unique(rows[sizes == _UNKNOWN]):
                table[n] = _size(contents(int(n)), call) if n else 0
            sizes = table[rows]
            total = int(np.add.reduce(sizes))
        return sizes, total


def _size(specs: Specs, call: Call) -> int:
    return wire.size(wire.as_long(call.round), call.exchange, specs, step=wire.as_long(call.use))


@cache
def _never_to_itself(senders: tuple[int, ...], receivers: tuple[int, ...]) -> Seconds:
    """Minus infinity where sender and receiver are one, else 0."""
    return np.where(np.not_equal.outer(senders, receivers), 0.0, -np.inf)
