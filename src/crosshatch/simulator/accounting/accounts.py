"""Which messages an exchange sends, and to whom: the papers' routes over a federation's links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crosshatch.exchanges import Within
from crosshatch.network import Direction
from crosshatch.protocol.message_contents import DECISION, About, Always, Call, Contents, MessageContents, Specs
from crosshatch.simulator.accounting.links import ClientLink, Links
from crosshatch.simulator.vertical.batch import Batch

Behind = Mapping[int, npt.NDArray[np.bool_]]
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

    def _with_links(self, silos: Sequence[int]) -> tuple[int, ...]:
        return tuple(j for j in silos if j in self._linked)

    def _with_blocks(self, silos: Sequence[int]) -> Sequence[int]:
        """Those that have something to send: one with labels alone has not."""
        return silos if all(self.sizes) else [j for j in silos if self.sizes[j]]

    @cached_property
    def _blocks(self) -> dict[str, list[Always]]:
        """Messages with a silo's block, by exchange; "whole" for clients that missed what a codec builds on."""
        coded = {x: [Always(specs) for specs in self._specs(x)] for x in ("broadcast", "average")}
        return coded | {"whole": [Always(self.contents.plain_block(n)) for n in self.sizes]}

    def _specs(self, exchange: str) -> list[Specs]:
        """A silo's block, and the optimiser's state where it travels along."""
        along = [self.contents.plain_block(n) for n in self.states] or [()] * len(self.sizes)
        return [(*self.contents.block(exchange, n), *more) for n, more in zip(self.sizes, along, strict=True)]

    def broadcast(self, batch: Batch, within: Within, call: Call, behind: Behind) -> None:
        """Hub (or server) to clients at work: the silo's block (TDCD lines 11-12)."""
        silos = self._with_blocks(range(len(self.sizes)))
        if within == "federation":
            self._straight_to_server(batch, silos, call)
        linked, blocks = self._with_links(silos), self._blocks
        usual, whole = ([blocks[kind][j] for j in linked] for kind in ("broadcast", "whole"))
        self._to_clients(batch, linked, usual, whole, behind, call, _CLIENT_LINKS[within])

    def average(self, batch: Batch, silos: Sequence[int], within: Within, call: Call) -> None:
        """Clients at work to hub (or server): the blocks of these silos (TDCD line 32)."""
        silos = self._with_blocks(silos)
        if within == "federation":
            self._straight_to_server(batch, silos, call)
        linked, blocks = self._with_links(silos), self._blocks["average"]
        self.links.clients_to_hubs(batch, linked, [blocks[j] for j in linked], call, link=_CLIENT_LINKS[within])

    def _straight_to_server(self, batch: Batch, silos: Sequence[int], call: Call) -> None:
        """Blocks between the server and silos of one party, one for each of its pairs."""
        for j in silos:
            if j in self.links.one_party:
                block = self._blocks[call.exchange][j].specs
                way: Direction = "down" if call.exchange == "broadcast" else "up"
                self.links.hubs_and_server([j], [block], way, call, pairs=batch.clients[j])

    def to_server(self, call: Call) -> None:
        """Every hub to the server: its block, in an average over groups."""
        self.links.hubs_and_server(self._with_blocks(range(len(self.sizes))), self._groups_blocks, "up", call)

    def from_server(self, call: Call) -> None:
        """The server to every hub."""
        self.links.hubs_and_server(self._with_blocks(range(len(self.sizes))), self._groups_blocks, "down", call)

    @cached_property
    def _groups_blocks(self) -> list[Specs]:
        return [specs for size, specs in zip(self.sizes, self._specs("average_groups"), strict=True) if size]

    def _to_clients(
        self,
        batch: Batch,
        silos: tuple[int, ...],
        usual: Sequence[Contents],
        whole: Sequence[Contents],
        behind: Behind,
        call: Call,
        link: ClientLink = "client-hub",
    ) -> None:
        """Hubs of these silos to their clients at work; those who are behind get the whole instead of the usual."""
        if not any(j in behind for j in silos):
            self.links.hubs_to_clients(batch, silos, usual, call, link=link)
            return
        nobody = [np.zeros(len(batch.clients[j]), dtype=bool) for j in silos]
        late = np.concatenate([behind.get(j, no) for j, no in zip(silos, nobody, strict=True)])
        rows = batch.counts(silos)
        self.links.hubs_to_clients(batch, silos, usual, call, np.where(late, 0, rows), link)
        self.links.hubs_to_clients(batch, silos, whole, call, np.where(late, rows, 0), link)

    def share(self, batch: Batch, senders: Sequence[int], receivers: Sequence[int], call: Call, behind: Behind) -> None:
        """Clients to hub, hub to the receiving hubs, hub to clients (TDCD lines 13-22)."""
        contents = self.contents
        sending = [j for j in senders if len(receivers) > 1 or j not in receivers]
        getting = receivers if len(sending) > 1 else [i for i in receivers if i not in sending]
        if not sending:
            return
        self._ask(batch, sending, call)
        specs = contents.passed_on("share", sending, batch.rows, lambda j: batch.counts([j]), head=True)
        self.links.hubs_to_hubs(sending, getting, specs, "across", call)
        linked = self._with_links(getting)
        everybody = len(sending) == len(self.sizes)
        usual = [contents.answers[i] for i in linked] if everybody else contents.answers_of(sending, linked)
        whole = contents.answers_of(sending, linked, whole=True) if behind else usual
        self._to_clients(batch, linked, usual, whole, behind, call)

    def decide(self, everybody: Batch, by: int, call: Call) -> None:
        """One hub to all others, every hub to all its clients."""
        others = [j for j in range(len(self.sizes)) if j != by]
        self.links.hubs_to_hubs([by], others, [DECISION], "across", call)
        linked = self._with_links(range(len(self.sizes)))
        self.links.hubs_to_clients(everybody, linked, [Always(DECISION)] * len(linked), call)

    def _ask(self, batch: Batch, senders: Sequence[int], call: Call, part: int | None = None) -> None:
        """Embeddings from the clients to their hubs, of all parts or one."""
        linked = self._with_links(senders)
        rows = None if part is None else batch.counts(linked, part)
        self.links.clients_to_hubs(batch, linked, [self.contents.asked[j] for j in linked], call, rows)

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
        links, contents, asked, answered = self.links, self.contents, about.asked, about.answered
        sending = [j for j in senders if j != holder]
        self._ask(batch, sending, up, asked)
        specs = contents.passed_on("share", sending, _length(batch, asked), lambda j: batch.counts([j], asked))
        links.hubs_to_hubs(sending, [holder], specs, "up", up)
        here = self._with_links([holder])
        if sending and here:
            arriving = contents.embeddings_for(holder, sending, each=about.each)
            links.hubs_to_clients(batch, here, [arriving], up, batch.counts(here, asked))
        asking = [j for j in receivers if j != holder]
        if not asking:
            return
        leaving = contents.derivatives_of(asking, each=about.each)
        sent = batch.counts([holder], answered)
        links.clients_to_hubs(batch, here, [leaving], down, sent)
        specs = contents.passed_on("derivatives", asking, _length(batch, answered), lambda _: sent)
        links.hubs_to_hubs([holder], asking, specs, "down", down)
        there = self._with_links(asking)
        rows = None if answered is None else batch.counts(there, answered)
        links.hubs_to_clients(batch, there, [contents.derivatives_for(j) for j in there], down, rows)


def _length(batch: Batch, part: int | None) -> int:
    return batch.rows if part is None else len(batch.parts[part])
