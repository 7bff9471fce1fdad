"""What arrives of what a party sends: the one place where something may happen to it on the way, such as a codec.

A codec encodes a value once, where it enters an exchange: an embedding or derivative at the client that computed it,
a block or head at the party that sends it. Hubs forward what they received as it is; what a hub puts together for a
client (the others' sum, or the rows of its samples) travels the last leg as plain numbers.

With error feedback a message says what changed since the one before. A client that was not at work then gets the whole
value instead, as plain numbers, so that all clients at work hold the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec, Channel, Draw, ErrorFeedback
from crosshatch.errors import ConfigError
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import CODED, block_channel
from crosshatch.simulator.vertical.batch import Batch

_UP_TO_DATE = "up_to_date"


@dataclass
class Arrivals:
    """A federation's codecs by exchange, with a channel for each sender, and for each receiver where these differ."""

    codecs: Mapping[str, AnyCodec]
    seed: int
    samples: int
    one_party: frozenset[int] = frozenset()  # silos without links inside: their blocks stay where they are
    _channels: dict[str, Channel] = field(default_factory=dict)
    _up_to_date: dict[str, Tensor] = field(default_factory=dict)  # by channel, (clients,): who got its last message

    def __post_init__(self) -> None:
        """Refuse a codec on an exchange that does not exist."""
        for exchange in self.codecs:
            if exchange not in CODED:
                raise ConfigError(f"codecs has {exchange!r}: the exchanges are {', '.join(CODED)}")

    @cached_property
    def altered(self) -> frozenset[str]:
        """The exchanges in which something happens to what is sent; everywhere else it arrives as it was.

        Who changes numbers on their way (a codec, noise, masks) must be named here: shortcuts are taken elsewhere.
        """
        return frozenset(self.codecs)

    def travels(self, exchange: str, silo: int) -> bool:
        """Whether a silo's block goes through a codec in `broadcast` or `average`."""
        return exchange in self.altered and silo not in self.one_party

    def embeddings(
        self,
        exchange: str,
        name: str,
        rows: Sequence[Tensor],
        batch: Batch,
        sender: int,
        *,
        use: int,
        parts: Sequence[int],
    ) -> tuple[Tensor, ...]:
        """What arrives of rows (n, e) in the batch's order, for each of these parts, sent by the clients of `sender`.

        `name` tells this channel from others of the exchange, `use` this message from others of the round.
        """
        if exchange not in self.altered:
            return tuple(rows)
        held = [batch.held[sender][s] for s in parts]
        ids = np.concatenate([_sorted(one.order, batch.parts[s]) for one, s in zip(held, parts, strict=True)])
        client = np.concatenate([np.repeat(np.arange(len(one.counts)), one.counts) for one in held])
        order = np.argsort(client, kind="stable")  # one message per client, about all its parts
        counts: Ids = np.bincount(client, minlength=len(batch.clients[sender]))
        stacked = torch.cat([batch.by_client(sender, s, value) for s, value in zip(parts, rows, strict=True)])
        index = torch.as_tensor(order, device=stacked.device)
        arrived = self._channel(exchange, name, self.samples).transmit(
            stacked.index_select(0, index), ids[order], counts, draws=self._draws(exchange, name, batch, use, sender)
        )
        back = torch.empty_like(arrived).index_copy_(0, index, arrived)
        pieces = torch.split(back, [len(value) for value in rows])
        return tuple(batch.as_drawn(sender, s, piece) for s, piece in zip(parts, pieces, strict=True))

    def vector(self, name: str, row: Tensor, call: Call, *, where: Tensor | None) -> Tensor:
        """What arrives of one vector (p,) from a party with a channel of its own; the rest as for `vectors`."""
        first = np.zeros(1, dtype=np.int64)
        return self.vectors(name, row.unsqueeze(0), first, 1, call, where=where).squeeze(0)

    def vectors(self, name: str, rows: Tensor, ids: Ids, senders: int, call: Call, *, where: Tensor | None) -> Tensor:
        """What arrives of vectors (n, p), one message each, sent by parties numbered `ids` of `senders`.

        Only the numbers at `where` are sent (None: all): what is not trained everybody has.
        """
        exchange = call.exchange
        if exchange not in self.altered:
            return rows
        draws = [Draw(self.seed, f"{exchange}:{name}", (call.round, call.use, int(i))) for i in ids]
        sent = rows if where is None else rows.index_select(1, where)
        arrived = self._channel(exchange, name, senders).transmit(sent, ids, np.ones_like(ids), draws=draws)
        return arrived if where is None else rows.index_copy(1, where, arrived)

    def broadcast(self, base: Sequence[Tensor], trained: Sequence[Tensor | None], call: Call) -> tuple[Tensor, ...]:
        """What clients get of the hubs' blocks; empty where that is the blocks themselves."""
        sent = [j for j in range(len(base)) if self.travels("broadcast", j)]
        got = {j: self.vector(block_channel(j), base[j], call, where=trained[j]) for j in sent}
        return tuple(got.get(j, weights) for j, weights in enumerate(base)) if got else ()

    def blocks(
        self, rows: Tensor, start: Tensor, silo: int, clients: Ids, total: int, call: Call, *, where: Tensor | None
    ) -> Tensor:
        """What arrives of the blocks (n, p) of these clients, `total` in the silo: each sends how far it moved."""
        if not self.travels("average", silo):
            return rows
        name = block_channel(silo)
        return start + self.vectors(name, rows - start, clients, total, call, where=where)

    def behind(self, exchange: str, name: str, clients: Ids, total: int) -> npt.NDArray[np.bool_] | None:
        """Which of the clients at work missed an earlier message of a channel whose messages build on each other.

        They get the whole value instead of what changed; after this message all of them are up to date. None: nobody.
        """
        codec = self.codecs.get(exchange)
        if not isinstance(codec, ErrorFeedback) or codec.mode != "ef21" or codec.codec.lossless:
            return None
        key = f"{exchange}:{name}"
        before = self._up_to_date.get(key)
        after = torch.zeros(total, dtype=torch.bool)
        after[torch.as_tensor(clients)] = True
        self._up_to_date[key] = after
        missed: npt.NDArray[np.bool_] | None = None if before is None else ~before.numpy()[clients]
        return missed if missed is not None and missed.any() else None

    def all_behind(
        self, exchange: str, clients: Mapping[int, int], batch: Batch, to: str
    ) -> dict[int, npt.NDArray[np.bool_]]:
        """The same of some silos with so many clients each; silos without any are left out."""
        if exchange not in self.altered:
            return {}
        late = {j: self.behind(exchange, f"{block_channel(j)}{to}", batch.clients[j], n) for j, n in clients.items()}
        return {j: missed for j, missed in late.items() if missed is not None}

    def snapshot(self) -> dict[str, Tensor]:
        """Memories of error feedback, for a checkpoint."""
        memories = {
            f"{name}.{key}": tensor
            for name, channel in self._channels.items()
            for key, tensor in channel.snapshot().items()
        }
        return memories | {f"{name}.{_UP_TO_DATE}": clients for name, clients in self._up_to_date.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a snapshot, whatever was sent since."""
        self._channels.clear()
        self._up_to_date.clear()
        for full, tensor in tensors.items():
            name, key = full.rsplit(".", 1)
            if key == _UP_TO_DATE:
                self._up_to_date[name] = tensor
                continue
            exchange, sender = name.split(":", 1)
            self._channel(exchange, sender, len(tensor)).restore({key: tensor})

    def _channel(self, exchange: str, sender: str, rows: int) -> Channel:
        name = f"{exchange}:{sender}"
        if name not in self._channels:
            self._channels[name] = Channel(self.codecs[exchange], rows)
        return self._channels[name]

    def _draws(self, exchange: str, name: str, batch: Batch, use: int, sender: int) -> list[Draw]:
        base = Draw(self.seed, f"{exchange}:{name}", (batch.round, use))
        return [base.of(int(client)) for client in batch.clients[sender]]


def _sorted(order: Tensor | None, ids: Ids) -> Ids:
    return ids if order is None else ids[order.cpu().numpy()]
