"""A hub: its silo's block, and who holds which sample; it serves exchanges and knows no algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from crosshatch.codecs import Draw
from crosshatch.local.moments import Moments
from crosshatch.protocol.client_weights import everyones_weights
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import ClientWeights
from crosshatch.testing.parties.agreed import Agreed, Batch
from crosshatch.testing.parties.desk import Desk, split_bytes
from crosshatch.testing.parties.model import Model


@dataclass
class Hub:
    """One party. `moments` is the average of its clients' states, where those are averaged."""

    agreed: Agreed
    silo: int
    model: Model
    desk: Desk = field(default_factory=Desk)
    moments: Moments | None = None

    def broadcast(self, block: Tensor, clients: list[int], call: Call) -> tuple[Tensor, dict[int, Tensor]]:
        """The block as clients will have it, and what each at work gets.

        One that missed what the message builds on gets it whole.
        """
        codec, value = self.agreed.codec("broadcast", self.silo), self.model.sent(block)
        draw = Draw(self.agreed.seed, f"broadcast:{self.silo}", (call.round, call.use, 0))
        content = self.desk.encode_vector("broadcast", codec, value, draw)
        whole = self.desk.decode_vector("broadcast back", codec, content, len(value), self.agreed.dtype, draw)
        behind = self.desk.behind("broadcast", codec, clients)
        if self.silo in self.agreed.one_party:
            behind = ()  # the party got every message, whichever of its pairs it was for
        return self.model.filled(whole), {k: whole if k in behind else content for k in clients}

    def average(
        self, block: Tensor, told: Tensor | None, given: Mapping[int, Tensor], weights: ClientWeights, call: Call
    ) -> Tensor:
        """The average over the clients; those not at work count with the hub's own block. `told` is what they had."""
        mine = self.model.sent(block)
        blocks = {client: self._block_of(client, content, told, len(mine), call) for client, content in given.items()}
        return self.model.filled(self._mean(mine, blocks, weights))

    def average_moments(self, given: Mapping[int, Tensor], weights: ClientWeights) -> None:
        """The same of their states."""
        assert self.moments is not None
        mine = self.model.sent_moments(self.moments)
        self.moments = self.model.filled_moments(self._mean(mine, given, weights))

    def _mean(self, mine: Tensor, given: Mapping[int, Tensor], weights: ClientWeights) -> Tensor:
        own, clients = self.agreed.owners[self.silo], self.agreed.clients[self.silo]
        at_work = torch.as_tensor(list(given)).numpy()
        client_weights = everyones_weights(own, clients, at_work, weights).tolist()
        total = torch.zeros_like(mine)
        for client, weight in enumerate(client_weights):
            if client in given:
                total = total + weight * given[client]
            elif weight:
                total = total + weight * mine
        return total

    def _block_of(self, client: int, content: Tensor, told: Tensor | None, size: int, call: Call) -> Tensor:
        codec = self.agreed.codec("average", self.silo)
        if codec is None:
            return content
        assert told is not None
        draw = Draw(self.agreed.seed, f"average:{self.silo}", (call.round, call.use, client))
        move = self.desk.decode_vector(f"average {client}", codec, content, size, self.agreed.dtype, draw)
        return self.model.sent(told) + move

    def gather(self, exchange: str, given: Mapping[int, Tensor], batch: Batch, part: int | None, width: int) -> Tensor:
        """What its clients sent about their rows, for another hub: all rows in the batch's order, or all the bytes."""
        if self.agreed.codec(exchange) is not None:
            return torch.cat(list(given.values()))
        every = torch.empty(len(batch.ids(part)), width, dtype=self.agreed.dtype)
        for client, rows in given.items():
            every[self.agreed.rows(self.silo, client, batch, part)] = rows
        return every

    def read(
        self, exchange: str, name: str, sender: int, content: Tensor, width: int, batch: Batch, part: int | None,
        call: Call,
    ) -> Tensor:  # fmt: skip
        """Rows (n, width) in the batch's order from what another silo's hub gathered."""
        codec, agreed = self.agreed.codec(exchange), self.agreed
        if codec is None:
            return content
        clients = agreed.at_work(sender, batch, part)
        places = [agreed.rows(sender, client, batch, part) for client in clients]
        every = torch.empty(len(batch.ids(part)), width, dtype=agreed.dtype)
        messages = split_bytes(content, codec, [len(one) for one in places], width, agreed.dtype)
        for client, place, message in zip(clients, places, messages, strict=True):
            draw = Draw(agreed.seed, f"{exchange}:{name}", (call.round, call.use, client))
            every[place] = self.desk.decode(
                f"{exchange}:{name}", codec, message, width, agreed.dtype, batch.ids(part)[place], agreed.samples, draw
            )
        return every

    def give_head(self, head: Tensor, name: str, call: Call) -> Tensor:
        """The head, of which this hub's silo is the holder, for the other hubs."""
        draw = Draw(self.agreed.seed, f"head:{name}", (call.round, call.use, 0))
        return self.desk.encode_vector(f"head:{name}", self.agreed.codec("head"), head, draw)

    def pass_head(self, content: Tensor, name: str, clients: list[int], call: Call) -> dict[int, Tensor]:
        """Pass the head's message on to the clients at work; those who missed the last one get the head whole."""
        draw = Draw(self.agreed.seed, f"head:{name}", (call.round, call.use, 0))
        codec, size = self.agreed.codec("head"), self.model.sizes[1]
        whole = self.desk.decode_vector(f"head:{name}", codec, content, size, self.agreed.dtype, draw)
        behind = self.desk.behind(f"head:{name}", codec, clients)
        return {k: whole if k in behind else content for k in clients}

    def put_together(
        self, arrived: Mapping[int, Tensor], seen: Mapping[int, Tensor], batch: Batch
    ) -> dict[int | None, Tensor]:
        """What it tells its clients of the other silos: the sum of all (under None), or each one's that is new.

        Without others that is zeros, or nothing, wide as it is.
        """
        if self.agreed.head_holder is not None:
            nothing = torch.empty(len(batch.ids()), 0, dtype=self.agreed.dtype)
            return {j: arrived[j] for j in sorted(arrived)} or {self.silo: nothing}
        every = [seen[j] for j in sorted(seen)]
        zeros = torch.zeros(len(batch.ids()), self.agreed.widths[self.silo], dtype=self.agreed.dtype)
        return {None: zeros if not every else torch.stack(every).sum(0)}
