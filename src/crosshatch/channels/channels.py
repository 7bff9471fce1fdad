"""All channels that a party sends or receives on, or (in a simulator) those of everybody.

A codec is a list of steps (clip, add noise, keep a part, round) that a value goes through once, where it enters an
exchange: an embedding or derivative at the client that computed it, a block or head at the party that sends it. Hubs
forward what they received as it is; what a hub puts together for a client (the others' sum, or the rows of its samples)
travels the last leg as plain numbers.

With error feedback a message says what changed since the one before. A client that was not at work then gets the whole
value instead, as plain numbers, so that all clients at work hold the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.channels.channel import Channel, Ids
from crosshatch.codecs import AnyCodec, Draw, ErrorFeedback

_MEMORY, _UP_TO_DATE = "memory", "up_to_date"
_FIRST: Ids = np.zeros(1, dtype=np.int64)


@final
@dataclass
class Channels:
    """Codecs by exchange; everything else travels as it is. A party calls `write` and `read`, a simulator `transmit`.

    A message is named by its draw: exchange and channel, round, use, and who sends it. That is where its randomness
    comes from, and which memory it has.

    >>> from crosshatch.codecs import TopK
    >>> sender, receiver = (Channels({"average": TopK(k=1)}, seed=7) for _ in "ab")
    >>> draw = sender.draw("average", "0", (3, 0), 12)  # silo 0, round 3, first use, client 12
    >>> content = sender.write_vector(draw, torch.tensor([1.0, 2.0]))
    >>> receiver.read_vector(draw, content, 2, torch.float32)
    tensor([0., 2.])
    """

    codecs: Mapping[str, AnyCodec]
    seed: int
    _channels: dict[str, Channel] = field(default_factory=dict)
    _got_last: dict[str, Ids] = field(default_factory=dict)  # by channel, who got its last message

    def draw(self, exchange: str, name: str, when: tuple[int, int], sender: int = 0) -> Draw:
        """The name of a message: `name` tells its channel from others of the exchange, `when` is round and use."""
        return Draw(self.seed, f"{exchange}:{name}", (*when, sender))

    def transmit(
        self, exchange: str, name: str, when: tuple[int, int], rows: Tensor, ids: Ids, of: int, senders: Ids,
        counts: Ids,
    ) -> Tensor:  # fmt: skip
        """What arrives of rows (n, width) about ids below `of`, in one message of `counts[i]` rows per sender."""
        draws = [self.draw(exchange, name, when, sender) for sender in senders.tolist()]
        return self._channel(f"{exchange}:{name}", of).transmit(rows, ids, counts, draws=draws)

    def write(self, draw: Draw, rows: Tensor, ids: Ids, of: int) -> Tensor:
        """Rows (n, width) about ids below `of`, as they are put into a message."""
        return rows if self._plain(draw) else self._write(draw, draw.exchange, rows, ids, of)

    def read(self, draw: Draw, content: Tensor, width: int, dtype: torch.dtype, ids: Ids, of: int) -> Tensor:
        """The rows (n, width) about these ids, from a message."""
        return content if self._plain(draw) else self._read(draw, draw.exchange, content, width, dtype, ids, of)

    def write_vector(self, draw: Draw, vector: Tensor) -> Tensor:
        """One vector (p,) as it is put into a message; every sender has a memory of its own."""
        return vector if self._plain(draw) else self._write(draw, _alone(draw), vector[None], _FIRST, 1)

    def read_vector(self, draw: Draw, content: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        """The vector (p,) in a message; one that comes whole, not encoded, replaces what the codec remembers."""
        if self._plain(draw):
            return content
        if content.dtype != torch.uint8:
            self._channel(_alone(draw), 1).memory = content[None].clone()
            return content
        return self._read(draw, _alone(draw), content, size, dtype, _FIRST, 1)[0]

    def see_vector(self, draw: Draw, content: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        """What the receivers make of a message that this party just wrote."""
        if self._plain(draw):
            return content
        data = content.numpy().tobytes()
        return self._channel(_alone(draw), 1).see(data, (1, size), dtype, _FIRST, draw=draw)[0]

    def missed(self, exchange: str, name: str, receivers: Ids) -> npt.NDArray[np.bool_] | None:
        """Which of those who get the next message missed the last one, where messages build on each other.

        They get the whole value instead of what changed; after this message all of them are up to date. None: nobody.
        """
        codec = self.codecs.get(exchange)
        if not isinstance(codec, ErrorFeedback) or codec.mode != "ef21" or codec.codec.lossless:
            return None
        before = self._got_last.get(f"{exchange}:{name}")
        self._got_last[f"{exchange}:{name}"] = receivers
        missed = None if before is None else np.isin(receivers, before, invert=True)
        return missed if missed is not None and missed.any() else None

    def snapshot(self) -> dict[str, Tensor]:
        """Memories of error feedback, for a checkpoint."""
        held = {name: one.memory for name, one in self._channels.items()}
        memories = {f"{name}.{_MEMORY}": memory.clone() for name, memory in held.items() if memory is not None}
        return memories | {f"{name}.{_UP_TO_DATE}": torch.as_tensor(ids) for name, ids in self._got_last.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a snapshot, whatever was sent since."""
        self._channels.clear()
        self._got_last.clear()
        for full, tensor in tensors.items():
            name, key = full.rsplit(".", 1)
            if key == _UP_TO_DATE:
                # Older checkpoints have a flag per client.
                self._got_last[name] = (tensor.nonzero()[:, 0] if tensor.dtype == torch.bool else tensor).numpy()
            else:
                self._channel(name, len(tensor)).memory = tensor.cpu().clone()

    def _plain(self, draw: Draw) -> bool:
        return draw.exchange.partition(":")[0] not in self.codecs

    def _write(self, draw: Draw, name: str, rows: Tensor, ids: Ids, of: int) -> Tensor:
        data = self._channel(name, of).send(rows, ids, draw=draw)
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    def _read(
        self, draw: Draw, name: str, content: Tensor, width: int, dtype: torch.dtype, ids: Ids, of: int
    ) -> Tensor:
        data = content.numpy().tobytes()
        return self._channel(name, of).receive(data, (len(ids), width), dtype, ids, draw=draw)

    def _channel(self, name: str, rows: int) -> Channel:
        if name not in self._channels:
            self._channels[name] = Channel(self.codecs[name.partition(":")[0]], rows)
        return self._channels[name]


def _alone(draw: Draw) -> str:
    """The channel of one sender's vectors."""
    return f"{draw.exchange} from {draw.numbers[-1]}"
