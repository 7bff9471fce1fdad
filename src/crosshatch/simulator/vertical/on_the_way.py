"""What arrives of what silos and their clients send, in bulk: rows about a batch's samples, and blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.channels import Channels
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import block_channel
from crosshatch.simulator.vertical.batch import Batch, Holdings

_FIRST: Ids = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True)
class OnTheWay:
    """Both ends of everybody's channels, in a federation with so many samples.

    Shortcuts are taken where an exchange is not among `channels.codecs`: who changes numbers must be named there.
    """

    channels: Channels
    samples: int
    clients: tuple[int, ...] = ()  # of each silo
    trained: Sequence[Tensor | None] = ()  # where the numbers of each silo's block stand that travel; None: all do
    one_party: frozenset[int] = frozenset()  # silos without links inside: their blocks stay where they are

    def alters(self, exchange: str, silo: int | None = None) -> bool:
        """Whether something happens to what is sent, or to one silo's block in `broadcast` or `average`."""
        return exchange in self.channels.codecs and silo not in self.one_party

    def rows(
        self, exchange: str, name: str, rows: Sequence[Tensor], batch: Batch, sender: int, *, use: int,
        parts: Sequence[int],
    ) -> Sequence[Tensor]:  # fmt: skip
        """What arrives of rows (n, e) in the batch's order, for each of these parts, sent by the clients of `sender`.

        `name` tells this channel from others of the exchange, `use` this message from others of the round.
        """
        if not self.alters(exchange):
            return rows
        held = [batch.held[sender][s] for s in parts]
        ids = np.concatenate([_by_client(one, batch.parts[s]) for one, s in zip(held, parts, strict=True)])
        sent = torch.cat([batch.by_client(sender, s, value) for s, value in zip(parts, rows, strict=True)])
        clients, counts, order = batch.clients[sender], held[0].counts, None
        if len(held) > 1:  # one message per client, about all its parts
            client = np.concatenate([np.repeat(np.arange(len(clients)), one.counts) for one in held])
            counts = np.bincount(client, minlength=len(clients))
            by_client = np.argsort(client, kind="stable")
            ids, order = ids[by_client], torch.as_tensor(by_client, device=sent.device)
            sent = sent.index_select(0, order)
        came = self.channels.transmit(exchange, name, (batch.round, use), sent, ids, self.samples, clients, counts)
        if order is not None:
            came = torch.empty_like(came).index_copy_(0, order, came)
        pieces = torch.split(came, [len(value) for value in rows])
        return [batch.as_drawn(sender, s, piece) for s, piece in zip(parts, pieces, strict=True)]

    def vector(self, name: str, row: Tensor, call: Call, *, where: Tensor | None) -> Tensor:
        """What arrives of one vector (p,) from a party with a channel of its own; the rest as for `vectors`."""
        return self.vectors(name, row.unsqueeze(0), _FIRST, 1, call, where=where).squeeze(0)

    def vectors(self, name: str, rows: Tensor, ids: Ids, senders: int, call: Call, *, where: Tensor | None) -> Tensor:
        """What arrives of vectors (n, p), one message each, sent by parties numbered `ids` of `senders`.

        Only the numbers at `where` are sent (None: all): what is not trained everybody has.
        """
        if not self.alters(call.exchange):
            return rows
        sent, when = rows if where is None else rows.index_select(1, where), (call.round, call.use)
        came = self.channels.transmit(call.exchange, name, when, sent, ids, senders, ids, np.ones_like(ids))
        return came if where is None else rows.index_copy(1, where, came)

    def broadcast(self, base: Sequence[Tensor], call: Call) -> tuple[Tensor, ...]:
        """What clients get of the hubs' blocks; empty where that is the blocks themselves."""
        sent = [j for j in range(len(base)) if self.alters("broadcast", j)]
        got = {j: self.vector(block_channel(j), base[j], call, where=self.trained[j]) for j in sent}
        return tuple(got.get(j, weights) for j, weights in enumerate(base)) if got else ()

    def blocks(self, rows: Tensor, start: Tensor, silo: int, clients: Ids, call: Call) -> Tensor:
        """What arrives of the blocks (n, p) of these clients of a silo: each sends how far it moved."""
        if not self.alters("average", silo):
            return rows
        name, total, where = block_channel(silo), self.clients[silo], self.trained[silo]
        return start + self.vectors(name, rows - start, clients, total, call, where=where)

    def missed(self, exchange: str, silos: Sequence[int], batch: Batch, to: str) -> Mapping[int, npt.NDArray[np.bool_]]:
        """By silo which of its clients at work missed an earlier message that this one builds on; empty for nobody."""
        if not self.alters(exchange):
            return {}
        late = {j: self.channels.missed(exchange, f"{block_channel(j)}{to}", batch.clients[j]) for j in silos}
        return {j: missed for j, missed in late.items() if missed is not None}


def _by_client(held: Holdings, ids: Ids) -> Ids:
    return ids if held.order is None else ids[held.order.cpu().numpy()]
