"""The parties of a federation, and the legs between them that several exchanges have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.exchanges import Within
from crosshatch.protocol.message_contents import Call
from crosshatch.testing.parties.agreed import Agreed, Batch
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.hub import Hub
from crosshatch.testing.parties.post import Post
from crosshatch.testing.parties.values_by_party import Embeddings


@dataclass(frozen=True)
class Parties:
    """Everybody, and the post between them."""

    agreed: Agreed
    hubs: tuple[Hub, ...]
    clients: tuple[tuple[Client, ...], ...]  # [silo][client]
    post: Post

    def begin_round(self) -> None:
        """Everybody is told that a round begins."""
        for silo in self.clients:
            for client in silo:
                client.begin_round()

    def is_alone(self, silo: int) -> bool:
        """Whether hub and client of a silo are one party, so that its moments are nobody else's."""
        return silo in self.agreed.one_party and not self.agreed.hubs_together

    def moments_at(self, silo: int) -> Tensor:
        """What a hub would send of its silo's moments."""
        holder = self.clients[silo][0] if self.is_alone(silo) else self.hubs[silo]
        assert holder.moments is not None
        return holder.model.sent_moments(holder.moments)

    def take_moments(self, silo: int, arrived: Tensor) -> None:
        """A hub goes on with moments that a server sent."""
        holder = self.clients[silo][0] if self.is_alone(silo) else self.hubs[silo]
        holder.moments = holder.model.filled_moments(arrived)

    def at_work(self, batch: Batch, silos: Sequence[int] | None = None, part: int | None = None) -> list[Client]:
        """The clients with samples of the batch (or of one part)."""
        some = self.agreed.silos if silos is None else silos
        return [self.clients[j][k] for j in some for k in self.agreed.at_work(j, batch, part)]

    def link(self, silo: int, direction: str, within: Within = "silo") -> str | None:
        """The link between a silo's clients and their hub, if they are not one, or the server."""
        if within == "federation":
            return f"{'group' if silo in self.agreed.one_party else 'client'}-server {direction}"
        return None if silo in self.agreed.one_party else f"client-hub {direction}"

    def between_hubs(self, direction: str) -> str | None:
        """The link between two hubs, if they are not one party."""
        return None if self.agreed.hubs_together else f"hub-hub {direction}"

    def collect(
        self, exchange: str, name: str, silo: int, rows: Mapping[int, Tensor], width: int, batch: Batch,
        part: int | None, call: Call,
    ) -> Tensor:  # fmt: skip
        """A silo's clients send their rows to the hub; what it puts together of them for other hubs."""
        given = {}
        for k, mine in rows.items():
            content = self.clients[silo][k].give_rows(exchange, name, mine, batch, part, call)
            (given[k],) = self.post.carry(self.link(silo, "up"), call, content)
        return self.hubs[silo].gather(exchange, given, batch, part, width)

    def rows_of(self, embeddings: Embeddings, silo: int, batch: Batch, part: int | None = None) -> dict[int, Tensor]:
        """Each client's own rows of all parts, or of one."""
        return {
            client.number: torch.cat(values) if part is None else values[part]
            for client in self.at_work(batch, [silo], part)
            for values in (embeddings.values[silo, client.number],)
        }
