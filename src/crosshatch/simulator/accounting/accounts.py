"""Which messages an exchange sends, and to whom: the papers' routes over a federation's links.

Their bytes are counted in `links.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crosshatch.exchanges import Within
from crosshatch.network import Direction
from crosshatch.protocol.message_contents import DECISION, About, Always, Call, Contents, MessageContents, Specs
from crosshatch.simulator.accounting.legs import ClientLeg, ClientLink, HubLeg
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.vertical.batch import Batch

Missed = Mapping[int, npt.NDArray[np.bool_]]
"""By silo which of its clients at work missed an earlier message; silos without any are left out."""
_CLIENT_LINKS: dict[Within, ClientLink] = {"silo": "client-hub", "federation": "client-server"}


@dataclass(frozen=True)
class Accounts:
    """Every exchange of a federation as messages on its links."""

    links: Links
    contents: MessageContents
    sizes: tuple[int, ...]  # numbers of each silo's block that travel
    states: tuple[int, ...] = ()  # numbers of an optimiser's state that travel with it; empty: none do

    @cached_property
    def _linked(self) -> frozenset[int]:
        """The silos whose clients have a link to their hub."""
        return frozenset() if self.links.one_machine else frozenset(range(len(self.sizes))) - self.links.one_party

    @cached_property
    def with_blocks(self) -> tuple[int, ...]:
        """The silos that have something to send: one with labels alone has not."""
        return tuple(j for j, size in enumerate(self.sizes) if size)

    @cached_property
    def _blocks(self) -> dict[str, list[Always]]:
        """Messages with a silo's block, by exchange; "whole" for clients that missed what a codec builds on."""
        coded = {x: [Always(specs) for specs in self._specs(x)] for x in ("broadcast", "average")}
        return coded | {"whole": [Always(self.contents.plain_block(n)) for n in self.sizes]}

    def _specs(self, exchange: str) -> list[Specs]:
        """A silo's block, and the optimiser's state where it travels along."""
        along = [self.contents.plain_block(n) for n in self.states] or [()] * len(self.sizes)
        return [(*self.contents.block(exchange, n), *more) for n, more in zip(self.sizes, along, strict=True)]

    def broadcast(self, batch: Batch, within: Within, call: Call, missed: Missed) -> None:
        """Hub (or server) to clients at work: the silo's block (TDCD lines 11-12)."""
        if within == "federation":
            self._straight_to_server(batch, self.with_blocks, call)
        linked, blocks = tuple(j for j in self.with_blocks if j in self._linked), self._blocks
        usual, whole = ([blocks[kind][j] for j in linked] for kind in ("broadcast", "whole"))
        leg = ClientLeg(call, "down", linked, usual, link=_CLIENT_LINKS[within])
        self.links.send(batch, *(self._in_two(batch, leg, whole, missed) if missed else [leg]))

    def average(self, batch: Batch, silos: Sequence[int], within: Within, call: Call) -> None:
        """Clients at work to hub (or server): the blocks of these silos (TDCD line 32)."""
        if within == "federation":
            self._straight_to_server(batch, [j for j in silos if self.sizes[j]], call)
        linked, blocks = tuple(j for j in silos if self.sizes[j] and j in self._linked), self._blocks["average"]
        leg = ClientLeg(call, "up", linked, [blocks[j] for j in linked], link=_CLIENT_LINKS[within])
        self.links.send(batch, leg)

    def _straight_to_server(self, batch: Batch, silos: Sequence[int], call: Call) -> None:
        """Blocks between the server and silos of one party, one for each of its pairs."""
        for j in silos:
            if j in self.links.one_party:
                block = self._blocks[call.exchange][j].specs
                way: Direction = "down" if call.exchange == "broadcast" else "up"
                self.links.hubs_and_server([j], [block], way, call, pairs=batch.clients[j])

    @cached_property
    def groups_blocks(self) -> list[Specs]:
        """What hubs and the server send each other in an average over groups, for `with_blocks`."""
        return [specs for size, specs in zip(self.sizes, self._specs("average_groups"), strict=True) if size]

    def _in_two(self, batch: Batch, leg: ClientLeg, whole: Sequence[Contents], missed: Missed) -> list[ClientLeg]:
        """The leg for clients that missed nothing, and one with the whole in place of the usual for those who did."""
        nobody = [np.zeros(len(batch.clients[j]), dtype=bool) for j in leg.silos]
        late = np.concatenate([missed.get(j, no) for j, no in zip(leg.silos, nobody, strict=True)])
        rows = batch.counts(leg.silos)
        return [leg._replace(rows=np.where(late, 0, rows)), leg._replace(rows=np.where(late, rows, 0), contents=whole)]

    def share(self, batch: Batch, senders: Sequence[int], receivers: Sequence[int], call: Call, missed: Missed) -> None:
        """Clients to hub, hub to the receiving hubs, hub to clients (TDCD lines 13-22)."""
        contents = self.contents
        sending = [j for j in senders if len(receivers) > 1 or j not in receivers]
        getting = receivers if len(sending) > 1 else [i for i in receivers if i not in sending]
        if not sending:
            return
        below, linked = (tuple(j for j in of if j in self._linked) for of in (sending, getting))
        rows = sum(map(len, batch.parts))
        specs = contents.passed_on("share", sending, rows, lambda j: batch.counts([j]), head=True)
        answer = ClientLeg(call, "down", linked, contents.answers_of(sending, linked))
        whole = contents.answers_of(sending, linked, whole=True) if missed else ()
        self.links.send(
            batch,
            ClientLeg(call, "up", below, [contents.asked[j] for j in below]),
            HubLeg(call, "across", sending, getting, specs),
            *(self._in_two(batch, answer, whole, missed) if any(j in missed for j in linked) else [answer]),
        )

    def decide(self, everybody: Batch, by: int, call: Call, *, branches: bool = False) -> None:
        """One hub to all others, every hub to all its clients, unless it has branches for that."""
        others = [j for j in range(len(self.sizes)) if j != by]
        linked = () if branches else tuple(sorted(self._linked))
        self.links.send(
            everybody,
            HubLeg(call, "across", [by], others, [DECISION]),
            ClientLeg(call, "down", linked, [Always(DECISION)] * len(linked)),
        )

    def derivatives(
        self,
        batch: Batch,
        holder: int,
        senders: Sequence[int],
        receivers: Sequence[int],
        about: About,
        up: Call,
        down: Call,
    ) -> None:
        """Embeddings by way of the hubs to the label holder's clients, derivatives the same way back."""
        contents, asked, answered = self.contents, about.sent_part, about.answered_part
        sending, asking = ([j for j in silos if j != holder] for silos in (senders, receivers))
        below, here, there = (tuple(j for j in of if j in self._linked) for of in (sending, [holder], asking))
        rows = None if asked is None else batch.counts(below, asked)
        length = sum(map(len, batch.parts if asked is None else [batch.parts[asked]]))
        specs = contents.passed_on("share", sending, length, lambda j: batch.counts([j], asked))
        legs: list[ClientLeg | HubLeg] = [
            ClientLeg(up, "up", below, [contents.asked[j] for j in below], rows),
            HubLeg(up, "up", sending, [holder], specs),
        ]
        if sending and here:
            arriving = contents.embeddings_for(holder, sending, each=about.one_per_silo)
            legs.append(ClientLeg(up, "down", here, [arriving], batch.counts(here, asked)))
        if asking:
            sent = batch.counts([holder], answered)
            length = sum(map(len, batch.parts if answered is None else [batch.parts[answered]]))
            specs = contents.passed_on("derivatives", asking, length, lambda _: sent, by=holder)
            rows = None if answered is None else batch.counts(there, answered)
            legs += [
                ClientLeg(down, "up", here, [contents.derivatives_of(asking, each=about.one_per_silo)], sent),
                HubLeg(down, "down", [holder], asking, specs),
                ClientLeg(down, "down", there, [contents.derivatives_for(j) for j in there], rows),
            ]
        self.links.send(batch, *legs)
