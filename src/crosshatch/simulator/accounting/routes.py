"""Which messages an exchange sends: the routes of the papers over a federation's links."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from crosshatch.codecs import AnyCodec
from crosshatch.exchanges import Within
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.contents import About, Always, Call, Contents, Specs
from crosshatch.simulator.accounting.traffic import ClientLink, Traffic
from crosshatch.simulator.vertical.batch import Batch

Leg = Callable[[int, Specs, Call, Ids], None]
Behind = Mapping[int, npt.NDArray[np.bool_]]
"""By silo which of its clients at work missed an earlier message; silos without any are left out."""
_CLIENT_LINKS: dict[Within, ClientLink] = {"silo": "client-hub", "federation": "client-server"}


@dataclass(frozen=True)
class Routes:
    """Links of a federation and the widths of what travels on them; `head` is its size and holder, if there is one."""

    traffic: Traffic
    dtype: torch.dtype
    widths: tuple[int, ...]
    arriving: tuple[int, ...]  # at a silo's clients of the others' embeddings, numbers a sample
    head: tuple[int, int] | None
    codecs: Mapping[str, AnyCodec]

    def block(self, exchange: str, size: int) -> Specs:
        """A message with a block of `size` numbers."""
        return (self._spec(exchange, (1, size)) if exchange in self.codecs else (self.dtype, (size,)),)

    def blocks_down(self, batch: Batch, sizes: Sequence[int], within: Within, call: Call, behind: Behind) -> None:
        """Hub (or server) to clients at work: the silo's block (TDCD lines 11-12)."""
        linked = self._from_server(batch, dict(enumerate(sizes)), within, self.traffic.server_to_hub, call)
        blocks = [Always(self.block("broadcast", sizes[j])) for j in linked]
        whole = [Always(((self.dtype, (sizes[j],)),)) for j in linked]
        self._to_clients(batch, linked, blocks, whole, behind, call, _CLIENT_LINKS[within])

    def blocks_up(self, batch: Batch, sizes: Mapping[int, int], within: Within, call: Call) -> None:
        """Clients at work to hub (or server): their blocks, of these sizes by silo (TDCD line 32)."""
        linked = self._from_server(batch, sizes, within, self.traffic.hub_to_server, call)
        blocks = [Always(self.block("average", sizes[j])) for j in linked]
        self.traffic.clients_to_hubs(batch.crowd(linked), blocks, call, link=_CLIENT_LINKS[within])

    def _to_clients(
        self,
        batch: Batch,
        silos: Sequence[int],
        usual: Sequence[Contents],
        whole: Sequence[Contents],
        behind: Behind,
        call: Call,
        link: ClientLink = "client-hub",
    ) -> None:
        """Hubs of these silos to their clients at work; those who are behind get the whole instead of the usual."""
        crowd = batch.crowd(silos)
        if not any(j in behind for j in silos):
            self.traffic.hubs_to_clients(crowd, usual, call, link=link)
            return
        nobody = [np.zeros(len(batch.clients[j]), dtype=bool) for j in silos]
        late = np.concatenate([behind.get(j, no) for j, no in zip(silos, nobody, strict=True)])
        self.traffic.hubs_to_clients(crowd, usual, call, np.where(late, 0, crowd.rows), link)
        self.traffic.hubs_to_clients(crowd, whole, call, np.where(late, crowd.rows, 0), link)

    def _from_server(self, batch: Batch, sizes: Mapping[int, int], within: Within, leg: Leg, call: Call) -> list[int]:
        """Blocks straight between the server and silos of one party; the other silos, whose clients have a link."""
        for j in sizes if within == "federation" else ():
            if j in self.traffic.single:
                leg(j, self.block(call.exchange, sizes[j]), call, batch.clients[j])
        return self.traffic.linked(sizes)

    def share(self, batch: Batch, receivers: Sequence[int], call: Call, behind: Behind) -> None:
        """Clients to hub, hub to the receiving hubs, hub to clients (TDCD lines 13-22)."""
        senders = [j for j in range(len(self.widths)) if len(receivers) > 1 or j not in receivers]
        self._ask(batch, senders, call)
        specs = [(*self._gathered("share", batch, j, None, self.widths[j]), *self._head_from(j)) for j in senders]
        self.traffic.hubs_to_hubs(senders, receivers, specs, "across", call)
        linked = self.traffic.linked(receivers)
        usual, whole = ([answers[j] for j in linked] for answers in (self._answers, self._whole_answers))
        self._to_clients(batch, linked, usual, whole, behind, call)

    def _ask(self, batch: Batch, senders: Sequence[int], call: Call, part: int | None = None) -> None:
        """Embeddings from the clients to their hubs, of all parts or one."""
        linked = self.traffic.linked(senders)
        rows = None if part is None else batch.counts(linked, part)
        self.traffic.clients_to_hubs(batch.crowd(linked), [self._asked[j] for j in linked], call, rows)

    @cached_property
    def _asked(self) -> list[_Coded]:
        """What each silo's clients send of their embeddings."""
        return [_Coded(self, "share", width) for width in self.widths]

    @cached_property
    def _answers(self) -> list[_Rows]:
        """What each silo's clients get of the others' embeddings."""
        silos = range(len(self.widths))
        return [_Rows(self.dtype, self.arriving[j], self._head_to(j)) for j in silos]

    @cached_property
    def _whole_answers(self) -> list[_Rows]:
        """The same for clients that missed what the head's codec builds on: the head as plain numbers."""
        head = () if self.head is None else ((self.dtype, (self.head[0],)),)
        return [_Rows(a.dtype, a.width, head if a.along else ()) for a in self._answers]

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
        traffic, asked, answered = self.traffic, about.asked, about.answered
        sending = [j for j in senders if j != holder]
        self._ask(batch, sending, up, asked)
        specs = [self._gathered("share", batch, j, asked, self.widths[j]) for j in sending]
        traffic.hubs_to_hubs(sending, [holder], specs, "up", up)
        here = batch.crowd(traffic.linked([holder]))
        if sending and here.silos:
            arriving = sum(self.widths[j] for j in sending) if about.each else self.widths[holder]
            traffic.hubs_to_clients(here, [_Rows(self.dtype, arriving)], up, _rows(batch, holder, asked))
        asking = [j for j in receivers if j != holder]
        if not asking:
            return
        sent = _rows(batch, holder, answered)
        leaving = tuple(_Coded(self, "derivatives", self.widths[j]) for j in (asking if about.each else asking[:1]))
        traffic.clients_to_hubs(here, [_Several(leaving)], down, sent)
        specs = [self._gathered("derivatives", batch, holder, answered, self.widths[j]) for j in asking]
        traffic.hubs_to_hubs([holder], asking, specs, "down", down)
        there = traffic.linked(asking)
        rows = None if answered is None else batch.counts(there, answered)
        traffic.hubs_to_clients(batch.crowd(there), [_Rows(self.dtype, self.widths[j]) for j in there], down, rows)

    def _spec(self, exchange: str, shape: tuple[int, int]) -> tuple[torch.dtype, tuple[int, ...]]:
        """A tensor as its exchange sends it: plain, or the bytes its codec writes."""
        codec = self.codecs.get(exchange)
        return (self.dtype, shape) if codec is None else (torch.uint8, (codec.size(shape, self.dtype),))

    def _gathered(self, exchange: str, batch: Batch, silo: int, part: int | None, width: int) -> Specs:
        """What a hub passes on of its clients' messages: all rows, or the bytes of every encoded message."""
        if exchange not in self.codecs:
            return ((self.dtype, (batch.rows if part is None else len(batch.parts[part]), width)),)
        rows = _rows(batch, silo, part)
        distinct, times = np.unique(rows[rows > 0], return_counts=True)
        codec = self.codecs[exchange]
        total = sum(int(t) * codec.size((int(n), width), self.dtype) for n, t in zip(distinct, times, strict=True))
        return ((torch.uint8, (total,)),)

    def _head_from(self, silo: int) -> Specs:
        return self.block("head", self.head[0]) if self.head is not None and self.head[1] == silo else ()

    def _head_to(self, silo: int) -> Specs:
        return self.block("head", self.head[0]) if self.head is not None and self.head[1] != silo else ()


@dataclass(frozen=True)
class _Rows:
    """`width` plain numbers a row, and what comes along."""

    dtype: torch.dtype
    width: int
    along: Specs = ()

    def __call__(self, rows: int) -> Specs:
        return ((self.dtype, (rows, self.width)), *self.along)


@dataclass(frozen=True)
class _Coded:
    """`width` numbers a row, as the exchange's codec writes them."""

    routes: Routes = field(compare=False)
    exchange: str
    width: int

    def __call__(self, rows: int) -> Specs:
        return (self.routes._spec(self.exchange, (rows, self.width)),)


@dataclass(frozen=True)
class _Several:
    """Several tensors in one message."""

    contents: tuple[_Coded, ...]

    def __call__(self, rows: int) -> Specs:
        return tuple(spec for content in self.contents for spec in content(rows))


def _rows(batch: Batch, silo: int, part: int | None = None) -> Ids:
    """Samples of all parts (or one) at each client at work."""
    return batch.counts([silo], part)
