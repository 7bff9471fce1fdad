"""One direction of one exchange, with the memory its codec needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec, Codec, Draw

Ids: TypeAlias = npt.NDArray[np.int64]


@final
@dataclass
class Channel:
    """Sends tensors (n, width) whose rows have ids below `rows`: samples, or clients where each sends one vector.

    A party at one end calls `send` or `receive`; a simulator is both ends and calls `transmit`. Each updates the memory
    once, so a retry must send the same bytes again instead of calling it twice. Where an id occurs more than once in a
    call, its last row is remembered, at both ends.

    >>> from crosshatch.codecs import ErrorFeedback, TopK
    >>> sender, receiver = (Channel(ErrorFeedback(TopK(0.5)), rows=10) for _ in "ab")
    >>> x, ids = torch.tensor([[1.0, 2.0]]), np.array([7])
    >>> [receiver.receive(sender.send(x, ids), (1, 2), x.dtype, ids).tolist() for _ in range(2)]
    [[[0.0, 2.0]], [[1.0, 2.0]]]
    """

    codec: AnyCodec
    rows: int
    memory: Tensor | None = field(default=None, init=False, repr=False)  # (rows, width); None: not needed yet

    def send(self, tensor: Tensor, ids: Ids, *, draw: Draw | None = None) -> bytes:
        """A message about these rows."""
        if isinstance(self.codec, Codec):
            return self.codec.encode(tensor, draw=draw)
        data, memory = self.codec.encode(tensor, self._recall(ids, tensor.shape[1], tensor), draw=draw)
        self._remember(ids, memory)
        return data

    def receive(
        self, data: bytes, shape: tuple[int, int], dtype: torch.dtype, ids: Ids, *, draw: Draw | None = None
    ) -> Tensor:
        """What the message says about these rows; the shape is the one expected here."""
        if isinstance(self.codec, Codec):
            return self.codec.decode(data, shape, dtype, draw=draw)
        value, memory = self.codec.decode(data, self._recall(ids, shape[1], torch.empty(0, dtype=dtype)), draw=draw)
        if self.codec.mode == "ef21":
            self._remember(ids, memory)
        return value

    def see(
        self, data: bytes, shape: tuple[int, int], dtype: torch.dtype, ids: Ids, *, draw: Draw | None = None
    ) -> Tensor:
        """What the receivers make of the message that this end just sent."""
        if isinstance(self.codec, Codec):
            return self.codec.decode(data, shape, dtype, draw=draw)
        if self.codec.mode == "ef21":  # both ends remember what the receiver has
            return self._recall(ids, shape[1], torch.empty(0, dtype=dtype))
        return self.codec.codec.decode(data, shape, dtype, draw=draw)

    def transmit(
        self, tensor: Tensor, ids: Ids, counts: Ids | None = None, *, draws: Sequence[Draw] | None = None
    ) -> Tensor:
        """What arrives of one message, or of many: `counts[i]` rows in the i-th (see `Codec.roundtrip_each`)."""
        if isinstance(self.codec, Codec):
            counts = np.array([len(tensor)]) if counts is None else counts
            return self.codec.roundtrip_each(tensor, counts, draws=draws)
        memory = self._recall(ids, tensor.shape[1], tensor)
        value, memory = self.codec.roundtrip(tensor, memory, counts, draws=draws)
        self._remember(ids, memory)
        return value

    def _recall(self, ids: Ids, width: int, like: Tensor) -> Tensor:
        """What is remembered of these rows; the memory itself lies where NumPy can write into it."""
        if self.memory is None:
            self.memory = torch.zeros(self.rows, width, dtype=like.dtype)
        return self.memory.index_select(0, torch.as_tensor(ids)).to(like.device)

    def _remember(self, ids: Ids, rows: Tensor) -> None:
        """Written by NumPy, which promises that the last of several rows about one id stays."""
        assert self.memory is not None
        self.memory.numpy()[ids] = rows.numpy(force=True)
