"""A round's samples in the simulator: the same ids for everybody, for each silo ordered by the client holding them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.protocol.batches import Ids

_NONE: Ids = np.empty(0, dtype=np.int64)
_FIRST: Ids = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class Share:
    """How one silo's clients share out a part: `order` sorts the ids by client; `counts` follow the batch's clients.

    With `owners` the rows stay in the batch's order, and it says which client at work has each of them.
    """

    order: Tensor | None  # (n,) None: in order as they are
    counts: Ids  # one for each client at work
    owners: Ids | None = None  # (n,)

    def sort(self, rows: Tensor) -> Tensor:
        """Rows from the batch's order to this silo's."""
        return rows if self.order is None else rows.index_select(0, self.order)

    def unsort(self, rows: Tensor) -> Tensor:
        """Rows from this silo's order to the batch's."""
        if self.order is None:
            return rows
        out = torch.empty_like(rows)
        return out.index_copy_(0, self.order, rows)


@dataclass(frozen=True)
class Crowd:
    """The clients at work of some silos, one silo's behind another's."""

    silos: Sequence[int]
    clients: Sequence[Ids]  # of each silo
    rows: Ids  # samples of all parts at each client: at least one
    samples: int  # of all parts
    lengths: Sequence[int]  # how many clients of each silo
    begins: Ids  # where each silo's clients begin, and the end
    hubs: slice | list[int]  # the silos' places among all silos
    where: slice | Ids  # the clients' places among all clients at work

    def places(self) -> Iterator[slice]:
        """Where each silo's clients stand among these."""
        return map(slice, self.begins[:-1], self.begins[1:])


@dataclass
class Batch:
    """`parts[s]` are the ids of local step s (mod the number of parts); `clients[j]` the clients of silo j at work."""

    round: int
    parts: tuple[Ids, ...]
    clients: tuple[Ids, ...]
    shares: tuple[tuple[Share, ...], ...]  # [silo][part]
    whole: bool  # a single part holding all samples in order
    _features: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    _crowds: dict[tuple[int, ...], Crowd] = field(default_factory=dict)
    _ids: dict[int, Tensor] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Samples in all parts together."""
        return sum(len(ids) for ids in self.parts)

    @property
    def at_work(self) -> int:
        """Clients at work in all silos together."""
        return sum(map(len, self.clients))

    def crowd(self, silos: Sequence[int]) -> Crowd:
        """The clients at work of these silos, given in ascending order."""
        key = tuple(silos)
        if key not in self._crowds:
            clients = [self.clients[j] for j in key]
            lengths = [len(mine) for mine in clients]
            begins = np.array([0, *accumulate(lengths)])
            hubs: slice | list[int] = slice(None)
            where: slice | Ids = slice(None)
            if len(key) < len(self.clients):
                hubs = list(key)
                silo = np.repeat(np.arange(len(self.clients)), list(map(len, self.clients)))
                where = np.flatnonzero(np.isin(silo, key))
            self._crowds[key] = Crowd(key, clients, self.counts(key), self.rows, lengths, begins, hubs, where)
        return self._crowds[key]

    def remember(self, silos: tuple[int, ...], rows: Ids, begins: Ids) -> None:
        """The crowd of all silos, where its numbers are at hand."""
        lengths, every = [len(mine) for mine in self.clients], slice(None)
        self._crowds[silos] = Crowd(silos, self.clients, rows, self.rows, lengths, begins, every, every)

    def counts(self, silos: Sequence[int], part: int | None = None) -> Ids:
        """Samples (of one part) at each client at work of these silos."""
        if part is None and len(self.parts) > 1:
            every: Ids = sum((self.counts(silos, s) for s in range(1, len(self.parts))), start=self.counts(silos, 0))
            return every
        return np.concatenate([_NONE, *(self.shares[j][part or 0].counts for j in silos)])

    def ids(self, part: int, device: torch.device) -> Tensor:
        """The ids of a part as a tensor."""
        if part not in self._ids:
            self._ids[part] = torch.from_numpy(self.parts[part]).to(device)
        return self._ids[part]

    def forget(self) -> None:
        """Let go of what was gathered, unless it serves the whole run."""
        if not self.whole:
            self._features.clear()

    def gather(self, silos: Sequence[int], part: int, trains: Sequence[Tensor]) -> Tensor:
        """The samples (G, n, ...) of G silos whose samples have one shape, each in its own order."""
        first = trains[0]
        room = first.new_empty((len(silos), len(self.parts[part]), *first.shape[1:]))
        for j, train, x in zip(silos, trains, room.unbind(0), strict=True):
            self.gather_into(x, j, part, train)
        return room

    def gather_into(self, room: Tensor, silo: int, part: int, train: Tensor) -> None:
        """This silo's samples of a part in its own order, written into a room (n, ...)."""
        torch.index_select(train, 0, self.shares[silo][part].sort(self.ids(part, train.device)), out=room)
        self._features[silo, part] = room

    def features(self, silo: int, part: int, train: Tensor) -> Tensor:
        """This silo's samples of a part in its own order, gathered once."""
        key = (silo, part)
        if key not in self._features:
            share = self.shares[silo][part]
            if self.whole and share.order is None:
                self._features[key] = train
            else:
                self._features[key] = train.index_select(0, share.sort(self.ids(part, train.device)))
        return self._features[key]


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
    ordered: bool = True,
    by_number: bool = False,
) -> Batch:
    """Who holds what of the parts.

    `ordered`: each silo's rows are put in the order of its clients. One step from a common start does not need it.
    `by_number`: so they are, and a client's own by the samples' numbers, in whatever order they were drawn.
    """
    if by_number:
        parts, ordered = tuple(np.sort(part) for part in parts), True
    clients = [_FIRST] * silos
    shares: list[tuple[Share, ...]] = [()] * silos
    if len(owners.silos) < silos:
        shares = [tuple(Share(None, np.array([len(part)])) for part in parts)] * silos
    if owners.silos:
        whose = [owners.of_part(part) for part in parts]
        held = [np.bincount(one.reshape(-1), minlength=owners.count) for one in whose]
        (at_work,) = sum(held[1:], start=held[0]).nonzero()
        everybody = len(at_work) == owners.count
        edges = owners.first if everybody else np.searchsorted(at_work, owners.first)
        counts = held if everybody else [h[at_work] for h in held]
        if ordered:
            rows = [_sort(one - owners.first[:-1, np.newaxis], device) for one in whose]
        else:
            rows = [_place(one if everybody else np.searchsorted(at_work, one), edges) for one in whose]
        for i, (j, low, high) in enumerate(zip(owners.silos, edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            clients[j] = at_work[low:high] - owners.first[i]
            shares[j] = tuple(Share(r[0][i], n[low:high], r[1][i]) for r, n in zip(rows, counts, strict=True))
    batch = Batch(round, parts, tuple(clients), tuple(shares), whole=whole)
    if len(owners.silos) == silos and len(parts) == 1:
        batch.remember(owners.silos, counts[0], edges)
    return batch


Orders = tuple[Sequence[Tensor | None], Sequence[Ids | None]]
"""For each silo `Share.order` and `Share.owners`."""


def _sort(owners: Ids, device: torch.device) -> Orders:
    # Numbers of 16 bits are sorted by digits, several times as fast.
    order = np.argsort(owners.astype(np.int16) if owners.max() < 2**15 else owners, axis=1, kind="stable")
    as_they_are = np.all(owners[:, 1:] >= owners[:, :-1], axis=1).tolist()
    orders = torch.as_tensor(order, device=device).unbind(0)
    nobody = [None] * len(orders)
    return [None if still else one for one, still in zip(orders, as_they_are, strict=True)], nobody


def _place(numbers: Ids, edges: Ids) -> Orders:
    places = list(numbers - edges[:-1, np.newaxis])
    return [None] * len(places), places
