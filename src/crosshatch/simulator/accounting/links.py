"""The links between the parties of a federation: what messages cost on them, in bytes and in seconds.

Sizes come from the wire format. Whoever receives waits for its slowest sender. Where a silo is a single party there is
no link between hub and client, and where all is on one machine (central training) there are no messages at all. The
messages of all silos in an exchange are counted together: one by one they would cost more than the training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from operator import mul

import numpy as np

from crosshatch import wire
from crosshatch.local.local_steps import LocalSteps
from crosshatch.meter import Meter
from crosshatch.network import Clocks, Direction, Network, Seconds
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call, Contents, Specs
from crosshatch.simulator.accounting.legs import AtWork, ClientLeg, HubLeg
from crosshatch.simulator.vertical.batch import Batch

_MOST_KEPT = 4096  # seconds between hubs, by bytes
_ANYBODY = ""  # to the network: a party without settings of its own


@dataclass
class Links:
    """Links between the parties of a federation."""

    silos: Sequence[str]
    network: Network
    meter: Meter
    clocks: Clocks
    one_machine: bool = False  # everybody's samples lie in one place: nothing is sent
    one_party: frozenset[int] = frozenset()  # silos that are one party: the hub is the client
    hubs_together: bool = False  # the hubs of a group are one party: devices talk to their hospital
    others: tuple[Links, ...] = ()  # the same links under further networks: clocks of their own, and nothing else
    # By the identity of a batch's clients these, their clocks in this round, and those of some silos.
    of_round: dict[int, tuple[Sequence[Ids], Seconds, dict[tuple[int, ...], AtWork]]] = field(
        default_factory=dict, repr=False
    )
    # By kind of message its bytes and seconds for so many rows; between hubs seconds by bytes.
    _prices: dict[tuple[object, ...], Seconds] = field(default_factory=dict, repr=False)
    _usual: dict[tuple[object, ...], Seconds] = field(default_factory=dict, repr=False)
    _counted: list[tuple[str, str, int, int]] = field(default_factory=list, repr=False)

    @cached_property
    def every(self) -> tuple[Links, ...]:
        """These, and those under further networks."""
        return (self, *self.others)

    def _find(self, batch: Batch, silos: tuple[int, ...]) -> AtWork:
        """The clients at work of these silos, given in ascending order.

        In a round their clocks begin as their hubs' are at the batch's first message.
        """
        every = batch.clients
        if id(every) not in self.of_round:
            self.of_round[id(every)] = every, self.clocks.hubs.repeat([len(mine) for mine in every]), {}
        _, clocks, known = self.of_round[id(every)]
        if silos not in known:
            ends, lengths = [0, *accumulate(map(len, every))], [len(every[j]) for j in silos]
            places = [slice(*place) for place in pairwise([0, *accumulate(lengths)])]
            where: Ids | slice = slice(None)
            if len(silos) < len(every):
                where = np.concatenate([np.arange(ends[j], ends[j + 1]) for j in silos])
            clients, held = [every[j] for j in silos], [batch.held[j] for j in silos]
            rows = np.concatenate([sum(part.counts for part in parts) for parts in held])
            known[silos] = AtWork(list(silos), clients, rows, lengths, places, where, clocks)
        return known[silos]

    def send(self, batch: Batch | None, *legs: ClientLeg | HubLeg) -> Seconds:
        """Count the messages of legs, one leg after the other; whoever receives waits for the last of its senders.

        Returned is when each of the last leg's messages arrives that clients sent, minus infinity where there is none.
        """
        arrivals: Seconds = np.empty(0)
        for one in self.others:
            one.send(batch, *legs)
        for leg in legs:
            if isinstance(leg, HubLeg):
                self._between_hubs(leg)
            elif leg.silos:
                assert batch is not None
                at_work = self._find(batch, leg.silos)
                before, taken = at_work.clocks[at_work.where], self._carry(at_work, leg)
                if leg.direction == "down":
                    sent = self.clocks.hubs[at_work.silos].repeat(at_work.lengths) if leg.when is None else leg.when
                    now = np.maximum(before, sent + taken)
                    at_work.clocks[at_work.where] = now if leg.rows is None else np.where(leg.rows > 0, now, before)
                    continue
                arrivals = before + taken if leg.rows is None else np.where(leg.rows > 0, before + taken, -np.inf)
                if leg.hubs_wait:
                    last = np.maximum.reduceat(arrivals, [place.start for place in at_work.places])
                    self.clocks.hubs[at_work.silos] = np.maximum(self.clocks.hubs[at_work.silos], last)
        self.meter.add(self._counted)
        self._counted.clear()
        return arrivals

    def _carry(self, at_work: AtWork, leg: ClientLeg) -> Seconds:
        """Count the messages; how long each takes.

        Bytes and seconds are looked up by rows, since the next round asks for the same ones.
        """
        call, contents = leg.call, leg.contents
        about = at_work.rows if leg.rows is None else leg.rows
        alike = contents.count(contents[0]) == len(contents)
        of_call = (leg.link, leg.direction, call.exchange, wire.as_long(call.round), wire.as_long(call.use))
        prices = [
            self._price(one, about[where], leg, (one, *of_call))
            for where, one in zip([slice(None)] if alike else at_work.places, contents, strict=False)
        ]
        each: Seconds
        taken: Seconds
        each, taken = prices[0] if alike else np.concatenate(prices, axis=1)
        sent = len(about) if leg.rows is None else int(np.count_nonzero(leg.rows))
        if sent:
            self._counted.append((f"{leg.link} {leg.direction}", call.exchange, sent, int(each.sum())))
        for name, clients, where in self._with_settings(at_work) if self._special else ():
            taken[where] = self.network.transfer(leg.link, leg.direction, each[where].astype(np.int64), name, clients)
        return taken

    def _price(self, contents: Contents, rows: Ids, leg: ClientLeg, key: tuple[object, ...]) -> Seconds:
        """Bytes and seconds (2, messages) of messages about so many rows each."""
        table = self._prices.setdefault(key, np.zeros((2, 1)))  # about 0, 1, 2, ... rows; not asked for yet: -1
        missing = max(0, int(rows.max(initial=0)) + 1 - table.shape[1])
        if missing:
            table = self._prices[key] = np.pad(table, ((0, 0), (0, missing)), constant_values=-1)
        found = table.take(rows, axis=1)
        if found.min(initial=0) < 0:
            for n in np.unique(rows[found[0] < 0]):
                size = np.array(message_sizes([contents(int(n))], leg.call))
                table[:, n] = size[0], self.network.transfer(leg.link, leg.direction, size, _ANYBODY, None)[0]
            found = table.take(rows, axis=1)
        return found

    def _between_hubs(self, leg: HubLeg) -> None:
        senders, receivers, down = list(leg.senders), list(leg.receivers), leg.direction == "down"
        if self.one_machine or not senders or not receivers:
            return
        never_to_itself = np.where(np.not_equal.outer(senders, receivers), 0.0, -np.inf)
        arrivals = self.clocks.hubs[senders][:, np.newaxis] + never_to_itself
        if not self.hubs_together:
            ends, others = (receivers, senders) if down else (senders, receivers)  # over the link of which it goes
            times = [len(others) - (j in others) for j in ends]
            each = message_sizes(leg.specs, leg.call)
            size = sum(map(mul, each, times))
            self._counted.append((f"hub-hub {leg.direction}", leg.call.exchange, sum(times), size))
            seconds = self._hubs_seconds("hub-hub", ends, np.array(each), leg.direction)
            arrivals += seconds if down else seconds[:, np.newaxis]
        self.clocks.hubs[receivers] = np.maximum(self.clocks.hubs[receivers], np.maximum.reduce(arrivals))

    def hubs_and_server(
        self, silos: Sequence[int], specs: Sequence[Specs], direction: Direction, call: Call, pairs: Ids | None = None
    ) -> None:
        """Hubs and the server send each other a message, or one for each of a hub's pairs of its own and a device's."""
        for other in self.others:
            other.hubs_and_server(silos, specs, direction, call, pairs)
        messages = 1 if pairs is None else len(pairs)
        sizes = np.array(message_sizes(specs, call)) * messages
        self.meter.count(
            f"group-server {direction}", call.exchange, messages=messages * len(silos), size=int(sizes.sum())
        )
        self.clocks.hubs[list(silos)] += self._hubs_seconds("group-server", silos, sizes, direction)

    def _hubs_seconds(self, link: str, silos: Sequence[int], sizes: Ids, direction: Direction) -> Seconds:
        """How long each hub's message takes, or all those it sends together."""
        key = (link, direction, *sizes.tolist())
        if key not in self._usual:
            if len(self._usual) >= _MOST_KEPT:
                self._usual.clear()
            self._usual[key] = self.network.transfer(link, direction, sizes, _ANYBODY, None)
        seconds = self._usual[key].copy() if self._special else self._usual[key]
        for i, j in enumerate(silos) if self._special else ():
            if self.silos[j] in self._special:
                seconds[i] = self.network.transfer(link, direction, sizes[i : i + 1], self.silos[j], None)[0]
        return seconds

    def compute(self, silo: int, seconds: float) -> None:
        """A hub computes for so long, besides local steps."""
        for one in self.every:
            one.clocks.hubs[silo] += seconds

    def work(self, batch: Batch, silos: tuple[int, ...], local: LocalSteps, rows: Sequence[Ids] | None = None) -> None:
        """So many local steps at each of the clients.

        `rows` are the samples of each part at every client: one without samples for a step rests. None: nobody rests.
        """
        for one in self.others:
            one.work(batch, silos, local, rows)
        at_work, steps = self._find(batch, silos), local.steps
        each: Ids = np.full(len(at_work.rows), steps)
        if rows is not None:
            each = np.sum([rows[(local.first + q) % len(rows)] > 0 for q in range(steps)], axis=0)
        for j, where in zip(silos, at_work.places, strict=True):
            if self.one_machine or j in self.one_party:
                # A hospital of pairs trains one model for each of its devices, one after the other.
                steps_here = each[where].sum() if self.hubs_together else each[where].max(initial=0)
                self.clocks.hubs[j] += float(steps_here) * self.network.local_step(self.silos[j], None)[0]
        if self.one_machine or len(self.one_party) == len(self.silos):
            return
        taken = each * self._usual_step
        for name, clients, where in self._with_settings(at_work):
            taken[where] = each[where] * self.network.local_step(name, clients)
        at_work.clocks[at_work.where] += taken

    @cached_property
    def _special(self) -> frozenset[str]:
        """Silos with settings of their own in the network, or with such a client."""
        return frozenset(name.rpartition("/")[0] if "/" in name else name for name in self.network.named)

    @cached_property
    def _usual_step(self) -> Seconds:
        return self.network.local_step(_ANYBODY, None)

    def _with_settings(self, at_work: AtWork) -> Iterator[tuple[str, Ids, slice]]:
        """Silos at work with settings of their own, their clients and where these stand."""
        for j, clients, where in zip(at_work.silos, at_work.clients, at_work.places, strict=True):
            if self.silos[j] in self._special:
                yield self.silos[j], clients, where


def message_sizes(specs: Sequence[Specs], call: Call) -> list[int]:
    """The bytes of some messages."""
    round, use = wire.as_long(call.round), wire.as_long(call.use)
    return [wire.size(round, call.exchange, one, use=use) for one in specs]
