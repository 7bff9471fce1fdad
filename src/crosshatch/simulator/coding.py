"""Codecs at work: what the other side of an exchange gets to see.

A codec encodes a value once, where it enters an exchange: an embedding or derivative at the client that computed it,
a block or head at the party that sends it. Hubs forward what they received as it is; what a hub puts together for a
client (the others' sum, or the rows of its samples) travels the last leg as plain numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec, Channel, Draw
from crosshatch.errors import ConfigError
from crosshatch.exchanges import CODED
from crosshatch.simulator.batch import Batch, Ids


@dataclass
class Coding:
    """The codecs of a federation by exchange, with one channel for each sender (and receiver, for derivatives)."""

    codecs: Mapping[str, AnyCodec]
    seed: int
    samples: int
    one_party: frozenset[int] = frozenset()  # silos without links inside: their blocks stay where they are
    _channels: dict[str, Channel] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a codec on an exchange that does not exist."""
        for exchange in self.codecs:
            if exchange not in CODED:
                raise ConfigError(f"codecs has {exchange!r}: the exchanges are {', '.join(CODED)}")

    def travels(self, exchange: str, silo: int) -> bool:
        """Whether a silo's block goes through a codec in `broadcast` or `average`."""
        return exchange in self.codecs and silo not in self.one_party

    def embeddings(
        self, exchange: str, name: str, rows: Sequence[Tensor], batch: Batch, sender: int, *, step: int = 0
    ) -> tuple[Tensor, ...]:
        """What arrives of rows (n, e) in the batch's order, part by part, sent by the clients of silo `sender`.

        `name` tells this channel from others of the exchange.
        """
        if exchange not in self.codecs:
            return tuple(rows)
        shares = batch.shares[sender]
        ids = np.concatenate([_sorted(share.order, part) for share, part in zip(shares, batch.parts, strict=True)])
        client = np.concatenate([np.repeat(np.arange(len(share.counts)), share.counts) for share in shares])
        order = np.argsort(client, kind="stable")  # one message a client, about all its parts
        counts: Ids = np.bincount(client, minlength=len(batch.clients[sender]))
        stacked = torch.cat([share.sort(value) for share, value in zip(shares, rows, strict=True)])
        index = torch.as_tensor(order, device=stacked.device)
        arrived = self._channel(exchange, name, self.samples).transmit(
            stacked.index_select(0, index), ids[order], counts, draws=self._draws(exchange, name, batch, step, sender)
        )
        back = torch.empty_like(arrived).index_copy_(0, index, arrived)
        pieces = torch.split(back, [len(value) for value in rows])
        return tuple(share.unsort(piece) for share, piece in zip(shares, pieces, strict=True))

    def vector(self, exchange: str, name: str, row: Tensor, *, round: int) -> Tensor:
        """What arrives of one vector (p,) from a party with a channel of its own."""
        return self.vectors(exchange, name, row.unsqueeze(0), np.zeros(1, dtype=np.int64), 1, round=round).squeeze(0)

    def broadcast(self, base: Sequence[Tensor], round: int) -> tuple[Tensor, ...]:
        """What clients get of the hubs' blocks."""
        return tuple(
            self.vector("broadcast", str(j), weights, round=round) if self.travels("broadcast", j) else weights
            for j, weights in enumerate(base)
        )

    def vectors(self, exchange: str, name: str, rows: Tensor, ids: Ids, senders: int, *, round: int) -> Tensor:
        """What arrives of vectors (n, p), one message each, sent by parties numbered `ids` of `senders`."""
        if exchange not in self.codecs:
            return rows
        draws = [Draw(self.seed, f"{exchange}:{name}", (round,)).of(int(i)) for i in ids]
        return self._channel(exchange, name, senders).transmit(rows, ids, np.ones_like(ids), draws=draws)

    def snapshot(self) -> dict[str, Tensor]:
        """Memories of error feedback, for a checkpoint."""
        return {
            f"{name}.{key}": tensor
            for name, channel in self._channels.items()
            for key, tensor in channel.snapshot().items()
        }

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a snapshot."""
        for full, tensor in tensors.items():
            name, key = full.rsplit(".", 1)
            exchange, sender = name.split(":", 1)
            self._channel(exchange, sender, len(tensor)).restore({key: tensor})

    def _channel(self, exchange: str, sender: str, rows: int) -> Channel:
        name = f"{exchange}:{sender}"
        if name not in self._channels:
            self._channels[name] = Channel(self.codecs[exchange], rows)
        return self._channels[name]

    def _draws(self, exchange: str, name: str, batch: Batch, step: int, sender: int) -> list[Draw]:
        base = Draw(self.seed, f"{exchange}:{name}", (batch.round, step))
        return [base.of(int(client)) for client in batch.clients[sender]]


def _sorted(order: Tensor | None, ids: Ids) -> Ids:
    return ids if order is None else ids[order.cpu().numpy()]
