"""A round's samples in the simulator: which ones, from the shared seed, and by silo which client holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crosshatch.protocol.batches import BatchSource, Ids, draw

_NONE: Ids = np.empty(0, dtype=np.int64)
_FIRST: Ids = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Holdings:
    """How a part lies with one silo's clients: `order` sorts the ids by client; `counts` follow the batch's clients."""

    order: Tensor | None  # (n,) None: in order as they are
    counts: Ids  # one for each client at work


@dataclass(frozen=True)
class Batch:
    """`parts[s]` are the ids of local step s (mod the number of parts); `clients[j]` the clients of silo j at work."""

    round: int
    parts: tuple[Ids, ...]
    clients: tuple[Ids, ...]
    held: tuple[tuple[Holdings, ...], ...]  # [silo][part]
    all_in_order: bool  # a single part holding all samples in order

    @cached_property
    def rows(self) -> int:
        """The samples of all parts together."""
        return sum(map(len, self.parts))

    def by_client(self, silo: int, part: int, rows: Tensor) -> Tensor:
        """Rows (n, ...) of a part from the batch's order to that of a silo's clients."""
        order = self.held[silo][part].order
        return rows if order is None else rows.index_select(0, order)

    def as_drawn(self, silo: int, part: int, rows: Tensor) -> Tensor:
        """The same from the order of the silo's clients to the batch's."""
        order = self.held[silo][part].order
        return rows if order is None else torch.empty_like(rows).index_copy_(0, order, rows)

    def counts(self, silos: Sequence[int], part: int | None = None) -> Ids:
        """Samples (of one part) at each client at work of these silos."""
        parts = range(len(self.parts)) if part is None else [part]
        return np.concatenate([_NONE, *(sum(self.held[j][s].counts for s in parts) for j in silos)])


@dataclass
class Draws:
    """The batches of a federation whose silos' samples are held as `owners` (samples,) say, by so many `clients`."""

    source: BatchSource
    owners: Sequence[Ids]
    clients: Sequence[int]
    in_order_of_ids: bool  # a client's rows in the order of the samples' numbers, however they were drawn
    device: torch.device

    def __post_init__(self) -> None:
        """Of silos with several clients, who holds each sample: what is asked of one lies together."""
        self._several = [j for j, clients in enumerate(self.clients) if clients > 1]
        self._first = np.cumsum([0, *(self.clients[j] for j in self._several)])  # each one's first client, and the end
        # (samples, silos), clients counted on from silo to silo; in 16 bits where these do: such numbers are sorted by
        # digits, several times as fast
        kind = np.uint16 if self._first[-1] < 2**16 else np.int64
        self._numbers = np.empty((len(self.owners[0]), len(self._several)), kind)
        for i, (j, first) in enumerate(zip(self._several, self._first, strict=False)):
            np.add(self.owners[j], first, out=self._numbers[:, i], casting="unsafe")

    @cached_property
    def _all_samples(self) -> Batch:
        """All samples, shared out once for the whole run."""
        return self._share_out((np.arange(len(self.owners[0]), dtype=np.int64),), 0, all_in_order=True)

    def draw(self, size: int | None, *, round: int, parts: int, first: int) -> Batch:
        """`size` samples per part; None: all of them."""
        if size is None:
            return replace(self._all_samples, round=round)
        samples = len(self.owners[0])
        ids = draw(self.source, samples=samples, size=size, round=round, parts=parts, first=first)
        return self._share_out(ids, round, all_in_order=False)

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by a fraction of the clients of the silo with the most."""
        most = max(range(len(self.clients)), key=self.clients.__getitem__)
        if self.clients[most] == 1 or fraction >= 1:
            return replace(self._all_samples, round=round)
        chosen = np.zeros(self.clients[most], dtype=bool)
        chosen[self.source.clients(round, fraction, self.clients[most])] = True
        return self._share_out((np.flatnonzero(chosen[self.owners[most]]),), round, all_in_order=False)

    def _share_out(self, parts: tuple[Ids, ...], round: int, *, all_in_order: bool) -> Batch:
        """Who holds what of the parts."""
        if self.in_order_of_ids:
            parts = tuple(np.sort(part) for part in parts)
        clients = [_FIRST] * len(self.clients)
        held = [[Holdings(None, np.array([len(part)])) for part in parts]] * len(clients)  # of silos of one client
        counts = [np.zeros(0, dtype=np.int64)] * len(parts)
        orders: list[list[Tensor | None]] = [[]] * len(parts)
        for s, part in enumerate(parts if self._several else ()):
            own = np.ascontiguousarray(self._numbers.take(part, axis=0).T)  # (silos, n)
            counts[s] = np.bincount(own.reshape(-1), minlength=int(self._first[-1]))
            order = np.argsort(own, axis=1, kind="stable")
            orders[s] = list(torch.as_tensor(order, device=self.device).unbind(0))
            if all_in_order:  # samples that lie in order are not even copied
                still = np.all(own[:, 1:] >= own[:, :-1], axis=1)
                orders[s] = [None if as_it_is else one for one, as_it_is in zip(orders[s], still, strict=True)]
        (at_work,) = sum(counts[1:], start=counts[0]).nonzero()
        edges = np.searchsorted(at_work, self._first).tolist()
        for i, j in enumerate(self._several):
            mine = at_work[edges[i] : edges[i + 1]]
            clients[j] = mine - self._first[i]
            held[j] = [Holdings(order[i], n[mine]) for order, n in zip(orders, counts, strict=True)]
        return Batch(round, parts, tuple(clients), tuple(map(tuple, held)), all_in_order=all_in_order)
