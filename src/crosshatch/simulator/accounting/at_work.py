"""Who is at work in a round, as the links see them: the clients of several silos in one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosshatch.protocol.batches import Ids


@dataclass(frozen=True)
class AtWork:
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
