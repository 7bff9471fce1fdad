"""Which messages an exchange sends: the routes of the papers over a federation's links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from crosshatch.codecs import AnyCodec
from crosshatch.exchanges import Within
from crosshatch.simulator.batch import Batch, Ids
from crosshatch.simulator.traffic import Call, Specs, Traffic


@dataclass(frozen=True)
class Routes:
    """Links of a federation and the widths of what travels on them; `head` is its size and holder, if there is one."""

    traffic: Traffic
    dtype: torch.dtype
    widths: tuple[int, ...]
    head: tuple[int, int] | None
    codecs: Mapping[str, AnyCodec]

    def block(self, exchange: str, size: int) -> Specs:
        """A message with a block of `size` numbers."""
        return (self._spec(exchange, (1, size)) if exchange in self.codecs else (self.dtype, (size,)),)

    def blocks_down(self, batch: Batch, sizes: Sequence[int], within: Within) -> None:
        """Hub (or server) to clients at work: the silo's block (TDCD lines 11-12)."""
        call = Call("broadcast", batch.round)
        for j, size in enumerate(sizes):
            block = self.block("broadcast", size)
            if within == "federation" and j in self.traffic.single:
                self.traffic.server_to_hub(j, block, len(batch.clients[j]), call)
            else:
                everyone = np.ones_like(batch.clients[j])
                self.traffic.hub_to_clients(j, batch.clients[j], everyone, Always(block), call)

    def blocks_up(self, batch: Batch, silo: int, size: int, within: Within) -> None:
        """Clients at work to hub (or server): their blocks (TDCD line 32)."""
        call = Call("average", batch.round)
        block = self.block("average", size)
        if within == "federation" and silo in self.traffic.single:
            self.traffic.hub_to_server(silo, block, len(batch.clients[silo]), call)
        else:
            everyone = np.ones_like(batch.clients[silo])
            self.traffic.clients_to_hub(silo, batch.clients[silo], everyone, Always(block), call)

    def share(self, batch: Batch, receivers: Sequence[int]) -> None:
        """Clients to hub, hub to the receiving hubs, hub to clients (TDCD lines 13-22)."""
        call = Call("share", batch.round)
        senders = [j for j in range(len(self.widths)) if any(i != j for i in receivers)]
        for j in senders:
            self.traffic.clients_to_hub(
                j, batch.clients[j], _rows(batch, j), self._coded("share", self.widths[j]), call
            )
        arrivals = []
        for j in senders:
            specs = (*self._gathered("share", _rows(batch, j), self.widths[j]), *self._head_from(j))
            others = [i for i in receivers if i != j]
            arrivals.append(self.traffic.hub_to_hubs(j, others, specs, "across", call))
        self.traffic.wait(arrivals)
        for j in receivers:
            answer = _Rows(self.dtype, self._width_of_others(j), self._head_to(j))
            self.traffic.hub_to_clients(j, batch.clients[j], _rows(batch, j), answer, call)

    def derivatives(
        self, batch: Batch, holder: int, senders: Sequence[int], receivers: Sequence[int], *, step: int, inner: bool
    ) -> None:
        """Embeddings by way of the hubs to the label holder's clients, derivatives the same way back.

        `inner`: this exchange belongs to one local step and is about its part only; the round's first one carries the
        embeddings of all parts.
        """
        up, down = Call("share", batch.round, step), Call("derivatives", batch.round, step)
        of_step = [shares[step % len(shares)].counts for shares in batch.shares]
        whole = [_rows(batch, j) for j in range(len(self.widths))]
        asked = of_step if inner and step > 0 else whole
        answered = of_step if inner else whole
        sending = [j for j in senders if j != holder]
        for j in sending:
            self.traffic.clients_to_hub(j, batch.clients[j], asked[j], self._coded("share", self.widths[j]), up)
        self.traffic.wait(
            [
                self.traffic.hub_to_hubs(j, [holder], self._gathered("share", asked[j], self.widths[j]), "up", up)
                for j in sending
            ]
        )
        # With a sum one score a sample serves every silo; around stale embeddings or a head each has its own.
        each = (inner and step > 0) or self.head is not None
        if sending:
            arriving = sum(self.widths[j] for j in sending) if each else self.widths[holder]
            self.traffic.hub_to_clients(holder, batch.clients[holder], asked[holder], _Rows(self.dtype, arriving), up)
        asking = [j for j in receivers if j != holder]
        if not asking:
            return
        leaving = _Several(tuple(self._coded("derivatives", self.widths[j]) for j in (asking if each else asking[:1])))
        self.traffic.clients_to_hub(holder, batch.clients[holder], answered[holder], leaving, down)
        sent = answered[holder]
        self.traffic.wait(
            [
                self.traffic.hub_to_hubs(holder, [j], self._gathered("derivatives", sent, self.widths[j]), "down", down)
                for j in asking
            ]
        )
        for j in asking:
            self.traffic.hub_to_clients(j, batch.clients[j], answered[j], _Rows(self.dtype, self.widths[j]), down)

    def _spec(self, exchange: str, shape: tuple[int, int]) -> tuple[torch.dtype, tuple[int, ...]]:
        """A tensor as its exchange sends it: plain, or the bytes its codec writes."""
        codec = self.codecs.get(exchange)
        return (self.dtype, shape) if codec is None else (torch.uint8, (codec.size(shape, self.dtype),))

    def _coded(self, exchange: str, width: int) -> _Coded:
        return _Coded(self, exchange, width)

    def _gathered(self, exchange: str, rows: Ids, width: int) -> Specs:
        """What a hub passes on of its clients' messages: all rows, or the bytes of every encoded message."""
        if exchange not in self.codecs:
            return ((self.dtype, (int(rows.sum()), width)),)
        distinct, times = np.unique(rows[rows > 0], return_counts=True)
        codec = self.codecs[exchange]
        total = sum(int(t) * codec.size((int(n), width), self.dtype) for n, t in zip(distinct, times, strict=True))
        return ((torch.uint8, (total,)),)

    def _width_of_others(self, silo: int) -> int:
        """Numbers a sample that reach a client: the others' sum, or all their embeddings."""
        return self.widths[silo] if self.head is None else sum(self.widths) - self.widths[silo]

    def _head_from(self, silo: int) -> Specs:
        return self.block("share", self.head[0]) if self.head is not None and self.head[1] == silo else ()

    def _head_to(self, silo: int) -> Specs:
        return self.block("share", self.head[0]) if self.head is not None and self.head[1] != silo else ()


@dataclass(frozen=True)
class Always:
    """The same message, whatever the rows."""

    specs: Specs

    def __call__(self, rows: int) -> Specs:  # noqa: ARG002
        return self.specs


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


def _rows(batch: Batch, silo: int) -> Ids:
    """Samples of all parts at each client at work."""
    first, *others = batch.shares[silo]
    counts: Ids = sum((share.counts for share in others), start=first.counts)
    return counts
