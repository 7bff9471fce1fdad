"""A round's samples in the simulator: which ones, from the shared seed, and by silo which client holds them."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.protocol.batches import BatchSource, Ids, SeededBatches, draw

Asked = tuple[int, int, int]
"""Size, parts and first part of a batch."""

_NONE: Ids = np.empty(0, dtype=np.int64)
_FIRST: Ids = np.zeros(1, dtype=np.int64)
_AHEAD = 8  # rounds whose batches are drawn in a row
_FEW_SAMPLES = 2**15  # up to which that is cheap


@dataclass(frozen=True)
class Holdings:
    """How a part lies with one silo's clients: `order` sorts the ids by client; `counts` follow the batch's clients.

    With `owners` the rows stay in the batch's order, and it says which client at work has each of them.
    """

    order: Tensor | None  # (n,) None: in order as they are
    counts: Ids  # one for each client at work
    owners: Ids | None = None  # (n,)


@dataclass
class Batch:
    """`parts[s]` are the ids of local step s (mod the number of parts); `clients[j]` the clients of silo j at work."""

    round: int
    parts: tuple[Ids, ...]
    clients: tuple[Ids, ...]
    held: tuple[tuple[Holdings, ...], ...]  # [silo][part]
    whole: bool  # a single part holding all samples in order
    rows: int = field(init=False)
    _features: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    _ids: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Count the samples in all parts together."""
        self.rows = sum(map(len, self.parts))

    def by_client(self, silos: Sequence[int], part: int, rows: Sequence[Tensor]) -> list[Tensor]:
        """Rows of a part for each of these silos, from the batch's order to that of the silo's clients."""
        orders = (self.held[j][part].order for j in silos)
        return [of if order is None else of.index_select(0, order) for of, order in zip(rows, orders, strict=True)]

    def as_drawn(self, silos: Sequence[int], part: int, rows: Sequence[Tensor]) -> list[Tensor]:
        """The same from the order of each silo's clients to the batch's."""
        orders = (self.held[j][part].order for j in silos)
        return [
            of if order is None else torch.empty_like(of).index_copy_(0, order, of)
            for of, order in zip(rows, orders, strict=True)
        ]

    def counts(self, silos: Sequence[int], part: int | None = None) -> Ids:
        """Samples (of one part) at each client at work of these silos."""
        if part is None and len(self.parts) > 1:
            every: Ids = sum((self.counts(silos, s) for s in range(1, len(self.parts))), start=self.counts(silos, 0))
            return every
        return np.concatenate([_NONE, *(self.held[j][part or 0].counts for j in silos)])

    def ids(self, part: int, device: torch.device) -> Tensor:
        """The ids of a part as a tensor."""
        if part not in self._ids:
            self._ids[part] = torch.from_numpy(self.parts[part]).to(device)
        return self._ids[part]

    def forget(self) -> None:
        """Let go of what was gathered."""
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
        torch.index_select(train, 0, self._ids_by_client(silo, part, train.device), out=room)
        self._features[silo, part] = room

    def features(self, silos: Sequence[int], part: int, trains: Sequence[Tensor]) -> list[Tensor]:
        """These silos' samples of a part, each in its own order, gathered once."""
        for j, train in zip(silos, trains, strict=True):
            if (j, part) not in self._features:
                as_they_are = self.whole and self.held[j][part].order is None
                ids = None if as_they_are else self._ids_by_client(j, part, train.device)
                self._features[j, part] = train if ids is None else train.index_select(0, ids)
        return [self._features[j, part] for j in silos]

    def _ids_by_client(self, silo: int, part: int, device: torch.device) -> Tensor:
        return self.by_client([silo], part, [self.ids(part, device)])[0]


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
    `by_number`: besides, each client's rows are put in the order of the samples' numbers, however they were drawn.
    """
    if by_number:
        parts, ordered = tuple(np.sort(part) for part in parts), True
    clients = [_FIRST] * silos
    held: list[tuple[Holdings, ...]] = [()] * silos
    if len(owners.silos) < silos:
        held = [tuple(Holdings(None, np.array([len(part)])) for part in parts)] * silos
    if owners.silos:
        whose = [owners.of_part(part) for part in parts]
        rows_of = [np.bincount(one.reshape(-1), minlength=owners.count) for one in whose]
        (at_work,) = sum(rows_of[1:], start=rows_of[0]).nonzero()
        everybody = len(at_work) == owners.count
        edges = owners.first if everybody else np.searchsorted(at_work, owners.first)
        counts = rows_of if everybody else [n[at_work] for n in rows_of]
        if ordered:
            rows = [_sort(one - owners.first[:-1, np.newaxis], device) for one in whose]
        else:
            rows = [_place(one if everybody else np.searchsorted(at_work, one), edges) for one in whose]
        for i, (j, low, high) in enumerate(zip(owners.silos, edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            clients[j] = at_work[low:high] - owners.first[i]
            held[j] = tuple(Holdings(r[0][i], n[low:high], r[1][i]) for r, n in zip(rows, counts, strict=True))
    return Batch(round, parts, tuple(clients), tuple(held), whole=whole)


Orders = tuple[Sequence[Tensor | None], Sequence[Ids | None]]
"""For each silo `Holdings.order` and `Holdings.owners`."""


def _sort(owners: Ids, device: torch.device) -> Orders:
    # Numbers of 16 bits are sorted by digits, several times as fast.
    order = np.argsort(owners.astype(np.int16) if owners.max(initial=0) < 2**15 else owners, axis=1, kind="stable")
    as_they_are = np.all(owners[:, 1:] >= owners[:, :-1], axis=1).tolist()
    orders = torch.as_tensor(order, device=device).unbind(0)
    nobody = [None] * len(orders)
    return [None if still else one for one, still in zip(orders, as_they_are, strict=True)], nobody


def _place(numbers: Ids, edges: Ids) -> Orders:
    places = list(numbers - edges[:-1, np.newaxis])
    return [None] * len(places), places


@dataclass
class Draws:
    """The batches of a federation whose silos' samples are held as `owners` (samples,) say, by so many `clients`."""

    source: BatchSource
    owners: Sequence[Ids]
    clients: Sequence[int]
    ordered: bool  # each silo's rows in the order of its clients
    by_number: bool  # a client's rows in the order of the samples' numbers
    device: torch.device
    _whole: Batch | None = None
    _ahead: dict[tuple[int, Asked], Batch] = field(default_factory=dict)
    _asked: Asked | None = None
    window: int = 1  # the batches of so many rounds are used
    _last: deque[Batch] = field(default_factory=deque)  # what was gathered for these is kept

    @property
    def _samples(self) -> int:
        return len(self.owners[0])

    @cached_property
    def _holders(self) -> Owners:
        pairs = zip(self.owners, self.clients, strict=True)
        return Owners.of([None if clients == 1 else owners for owners, clients in pairs])

    def draw(self, size: int | None, *, round: int, parts: int, first: int) -> Batch:
        """`size` samples per part; None: all of them, shared out once for the whole run."""
        return self._begin(self._drawn(size, round=round, parts=parts, first=first))

    def _begin(self, batch: Batch) -> Batch:
        """Let go of what was gathered for a batch that is no longer used, unless it serves the whole run."""
        if len(self._last) == self.window:
            gone = self._last.popleft()
            if not gone.whole:
                gone.forget()
        self._last.append(batch)
        return batch

    def _drawn(self, size: int | None, *, round: int, parts: int, first: int) -> Batch:
        if size is None:
            if self._whole is None:
                everybody: Ids = np.arange(self._samples, dtype=np.int64)
                self._whole = self._share_out((everybody,), round, whole=True)
            return replace(self._whole, round=round)
        asked = (size, parts, first)
        if (round, asked) not in self._ahead:
            # In a row they take half the time; whoever asks for the second time will ask for the next.
            again = asked == self._asked and isinstance(self.source, SeededBatches) and size * parts <= _FEW_SAMPLES
            self._asked = asked
            self._ahead = {(r, asked): self._draw(r, *asked) for r in range(round, round + (_AHEAD if again else 1))}
        return self._ahead[round, asked]

    def _draw(self, round: int, size: int, parts: int, first: int) -> Batch:
        ids = draw(self.source, samples=self._samples, size=size, round=round, parts=parts, first=first)
        return self._share_out(ids, round, whole=False)

    def select(self, fraction: float, *, round: int) -> Batch:
        """The samples held by a fraction of the clients of the silo with the most."""
        most = max(range(len(self.clients)), key=self.clients.__getitem__)
        if self.clients[most] == 1 or fraction >= 1:
            return self._begin(self._drawn(None, round=round, parts=1, first=0))
        chosen = np.zeros(self.clients[most], dtype=bool)
        chosen[self.source.clients(round, fraction, self.clients[most])] = True
        return self._begin(self._share_out((np.flatnonzero(chosen[self.owners[most]]),), round, whole=False))

    def _share_out(self, ids: tuple[Ids, ...], round: int, *, whole: bool) -> Batch:
        return share_out(
            ids, self._holders, silos=len(self.clients), round=round, whole=whole, device=self.device,
            ordered=self.ordered, by_number=self.by_number,
        )  # fmt: skip
