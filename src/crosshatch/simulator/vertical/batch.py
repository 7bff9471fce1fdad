"""A round's samples in the simulator: which ones, from the shared seed, and by silo which client holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
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
    whole: bool  # a single part holding all samples in order

    @cached_property
    def rows(self) -> int:
        """The samples of all parts together."""
        return sum(map(len, self.parts))

    def by_client(self, silo: int, part: int, rows: Tensor) -> Tensor:
        """Rows of a part from the batch's order to that of a silo's clients."""
        order = self.held[silo][part].order
        return rows if order is None else rows.index_select(0, order)

    def as_drawn(self, silo: int, part: int, rows: Tensor) -> Tensor:
        """The same from the order of the silo's clients to the batch's."""
        order = self.held[silo][part].order
        return rows if order is None else torch.empty_like(rows).index_copy_(0, order, rows)

    def counts(self, silos: Sequence[int], part: int | None = None) -> Ids:
        """Samples (of one part) at each client at work of these silos."""
        if part is None and len(self.parts) > 1:
            every: Ids = sum((self.counts(silos, s) for s in range(1, len(self.parts))), start=self.counts(silos, 0))
            return every
        return np.concatenate([_NONE, *(self.held[j][part or 0].counts for j in silos)])


@dataclass(frozen=True)
class Owners:
    """Who holds each sample, for the silos with several clients; their clients are numbered on from silo to silo."""

    silos: tuple[int, ...]
    first: Ids  # the number of each one's first client, and the number of all clients
    numbers: npt.NDArray[np.int32]  # (samples, silos): what a batch asks of a sample lies together

    @cached_property
    def count(self) -> int:
        """All clients of these silos."""
        return int(self.first[-1])

    @classmethod
    def of(cls, owners: Sequence[Ids | None]) -> Owners:
        """Put together `owners[j]` (samples,), None where silo j has one client."""
        several = {j: mine for j, mine in enumerate(owners) if mine is not None}
        first = np.cumsum([0, *(int(mine.max(initial=-1)) + 1 for mine in several.values())])
        numbers = [mine + offset for mine, offset in zip(several.values(), first, strict=False)]
        return cls(tuple(several), first, np.array(numbers, dtype=np.int32).T.copy())

    def of_part(self, ids: Ids) -> Ids:
        """The numbers of those who hold these samples, (silos, n)."""
        return np.ascontiguousarray(self.numbers.take(ids, axis=0).T, dtype=np.int64)


def share_out(
    parts: tuple[Ids, ...],
    owners: Owners,
    *,
    silos: int,
    round: int,
    whole: bool,
    device: torch.device,
    by_number: bool = False,
) -> Batch:
    """Who holds what of the parts.

    `by_number`: each client's rows are put in the order of the samples' numbers, however they were drawn.
    """
    if by_number:
        parts = tuple(np.sort(part) for part in parts)
    clients = [_FIRST] * silos
    held: list[tuple[Holdings, ...]] = [()] * silos
    if len(owners.silos) < silos:
        held = [tuple(Holdings(None, np.array([len(part)])) for part in parts)] * silos
    if owners.silos:
        whose = [owners.of_part(part) for part in parts]
        rows_of = [np.bincount(one.reshape(-1), minlength=owners.count) for one in whose]
        (at_work,) = sum(rows_of[1:], start=rows_of[0]).nonzero()
        edges = np.searchsorted(at_work, owners.first).tolist()
        orders = [_sort(one - owners.first[:-1, np.newaxis], device) for one in whose]
        for i, (j, low, high) in enumerate(zip(owners.silos, edges[:-1], edges[1:], strict=True)):
            mine = at_work[low:high]
            clients[j] = mine - owners.first[i]
            held[j] = tuple(Holdings(order[i], n[mine]) for order, n in zip(orders, rows_of, strict=True))
    return Batch(round, parts, tuple(clients), tuple(held), whole=whole)


def _sort(owners: Ids, device: torch.device) -> list[Tensor | None]:
    """For each silo `Holdings.order`."""
    # Numbers of 16 bits are sorted by digits, several times as fast.
    order = np.argsort(owners.astype(np.int16) if owners.max(initial=0) < 2**15 else owners, axis=1, kind="stable")
    as_they_are = np.all(owners[:, 1:] >= owners[:, :-1], axis=1).tolist()
    orders = torch.as_tensor(order, device=device).unbind(0)
    return [None if still else one for one, still in zip(orders, as_they_are, strict=True)]


@dataclass
class Draws:
    """The batches of a federation whose silos' samples are held as `owners` (samples,) say, by so many `clients`."""

    source: BatchSource
    owners: Sequence[Ids]
    clients: Sequence[int]
    by_number: bool  # a client's rows in the order of the samples' numbers
    device: torch.device

    @cached_property
    def _holders(self) -> Owners:
        pairs = zip(self.owners, self.clients, strict=True)
        return Owners.of([None if clients == 1 else owners for owners, clients in pairs])

    @cached_property
    def _whole(self) -> Batch:
        """All samples, shared out once for the whole run."""
        return self._share_out((np.arange(len(self.owners[0]), dtype=np.int64),), 0, whole=True)

    def draw(self, size: int | None, *, round: int, parts: int, first: int) -> Batch:
        """`size` samples per part; None: all of them."""
        if size is None:
            return replace(self._whole, round=round)
        samples = len(self.owners[0])
        ids = draw(self.source, samples=samples, size=size, round=round, parts=parts, first=first)
        return self._share_out(ids, round, whole=False)

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by a fraction of the clients of the silo with the most."""
        most = max(range(len(self.clients)), key=self.clients.__getitem__)
        if self.clients[most] == 1 or fraction >= 1:
            return replace(self._whole, round=round)
        chosen = np.zeros(self.clients[most], dtype=bool)
        chosen[self.source.clients(round, fraction, self.clients[most])] = True
        return self._share_out((np.flatnonzero(chosen[self.owners[most]]),), round, whole=False)

    def _share_out(self, ids: tuple[Ids, ...], round: int, *, whole: bool) -> Batch:
        return share_out(
            ids, self._holders, silos=len(self.clients), round=round, whole=whole, device=self.device,
            by_number=self.by_number,
        )  # fmt: skip
