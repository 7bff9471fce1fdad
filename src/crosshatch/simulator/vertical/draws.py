"""Which samples a round is about, and who holds them: from the shared seed, without a message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from crosshatch.protocol.batches import BatchSource, Ids, SeededBatches, draw
from crosshatch.simulator.vertical.batch import Batch, Owners, share_out

Asked = tuple[int, int, int]
"""Size, parts and first part of a batch."""

_AHEAD, _SMALL = 8, 2**15  # rounds whose batches are drawn in a row, and samples up to which that is cheap


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

    @property
    def _samples(self) -> int:
        return len(self.owners[0])

    @cached_property
    def _holders(self) -> Owners:
        pairs = zip(self.owners, self.clients, strict=True)
        return Owners.of([None if clients == 1 else owners for owners, clients in pairs])

    def draw(self, size: int | None, *, round: int, parts: int, first: int) -> Batch:
        """`size` samples a part; None: all of them, shared out once for the whole run."""
        if size is None:
            if self._whole is None:
                everybody: Ids = np.arange(self._samples, dtype=np.int64)
                self._whole = self._share_out((everybody,), round, whole=True)
            return replace(self._whole, round=round)
        asked = (size, parts, first)
        if (round, asked) not in self._ahead:
            # In a row they take half the time; whoever asks for the second time will ask for the next.
            again = asked == self._asked and isinstance(self.source, SeededBatches) and size * parts <= _SMALL
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
            return self.draw(None, round=round, parts=1, first=0)
        chosen = np.zeros(self.clients[most], dtype=bool)
        chosen[self.source.clients(round, fraction, self.clients[most])] = True
        return self._share_out((np.flatnonzero(chosen[self.owners[most]]),), round, whole=False)

    def _share_out(self, ids: tuple[Ids, ...], round: int, *, whole: bool) -> Batch:
        return share_out(
            ids, self._holders, silos=len(self.clients), round=round, whole=whole, device=self.device,
            ordered=self.ordered, by_number=self.by_number,
        )  # fmt: skip
