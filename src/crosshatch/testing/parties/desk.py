"""A party's own ends of the channels it sends and receives on: codecs with their memories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec, Channel, Draw, ErrorFeedback
from crosshatch.protocol.batches import Ids

_FIRST = np.zeros(1, dtype=np.int64)


@dataclass
class Desk:
    """Encodes what a party sends and decodes what it gets; `None` for a codec leaves numbers as they are."""

    _channels: dict[str, Channel] = field(default_factory=dict)
    _got_last: dict[str, frozenset[int]] = field(default_factory=dict)

    def encode(self, key: str, codec: AnyCodec | None, rows: Tensor, ids: Ids, samples: int, draw: Draw) -> Tensor:
        """Rows (n, width) about these ids of so many, as they are written into a message."""
        if codec is None:
            return rows
        return _bytes(self._channel(key, codec, samples).send(rows, ids, draw=draw))

    def decode(
        self, key: str, codec: AnyCodec | None, content: Tensor, width: int, dtype: torch.dtype, ids: Ids,
        samples: int, draw: Draw,
    ) -> Tensor:  # fmt: skip
        """The rows (n, width) about these ids, from a message."""
        if codec is None:
            return content
        channel = self._channel(key, codec, samples)
        return channel.receive(content.numpy().tobytes(), (len(ids), width), dtype, ids, draw=draw)

    def encode_vector(self, key: str, codec: AnyCodec | None, vector: Tensor, draw: Draw) -> Tensor:
        """One vector (p,) as it is written into a message."""
        return vector if codec is None else self.encode(key, codec, vector[None], _FIRST, 1, draw)

    def decode_vector(
        self, key: str, codec: AnyCodec | None, content: Tensor, size: int, dtype: torch.dtype, draw: Draw
    ) -> Tensor:
        """The vector (p,) in a message; one that comes whole, not encoded, replaces what the codec remembers."""
        if codec is None:
            return content
        if content.dtype != torch.uint8:
            self._channel(key, codec, 1).restore({"memory": content[None]})
            return content
        return self.decode(key, codec, content, size, dtype, _FIRST, 1, draw)[0]

    def behind(self, key: str, codec: AnyCodec | None, receivers: Sequence[int]) -> Collection[int]:
        """Which of those who get the next message missed the last one, where messages build on each other."""
        before = self._got_last.get(key)
        self._got_last[key] = frozenset(receivers)
        builds = isinstance(codec, ErrorFeedback) and codec.mode == "ef21" and not codec.codec.lossless
        return frozenset(receivers) - before if builds and before is not None else frozenset()

    def _channel(self, key: str, codec: AnyCodec, rows: int) -> Channel:
        if key not in self._channels:
            self._channels[key] = Channel(codec, rows)
        return self._channels[key]


def split_bytes(
    content: Tensor, codec: AnyCodec, counts: Sequence[int], width: int, dtype: torch.dtype
) -> list[Tensor]:
    """The messages, about so many rows each, that a hub passed on one after the other."""
    return list(torch.split(content, [codec.size((n, width), dtype) for n in counts]))


def _bytes(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)
