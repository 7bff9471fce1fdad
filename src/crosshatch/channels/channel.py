"""One direction of one exchange, with the memory its codec needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec, Codec, Draw
from crosshatch.errors import RunError

Ids: TypeAlias = npt.NDArray[np.int64]


@final
@dataclass
class Channel:
    """Sends tensors (n, width) whose rows have ids below `rows`: samples, or clients where each sends one vector.

    A party at one end calls `send` or `receive`; a simulator is both ends and calls `transmit`. Each updates the memory
    once, so a retry must send the same bytes again instead of calling it twice. The memory, (rows, width), is made
    when it is first needed. Where an id occurs more than once in a call, its last row is remembered, at both ends.

    >>> from crosshatch.codecs import ErrorFeedback, TopK
    >>> sender, receiver = (Channel(ErrorFeedback(TopK(0.5)), rows=10) for _ in "ab")
    >>> x, ids = torch.tensor([[1.0, 2.0]]), np.array([7])
    >>> [receiver.receive(sender.send(x, ids), (1, 2), x.dtype, ids).tolist() for _ in range(2)]
    [[[0.0, 2.0]], [[1.0, 2.0]]]
    """

    codec: AnyCodec
    rows: int
    _memory: Tensor | None = field(default=None, init=False, repr=False)

    def send(self, tensor: Tensor, ids: Ids, *, draw: Draw | None = None) -> bytes:
        """A message about these rows."""
        if isinstance(self.codec, Codec):
            return self.codec.encode(tensor, draw=draw)
        at, memory = self._recall(ids, tensor.shape[1], tensor)
        data, memory = self.codec.encode(tensor, memory, draw=draw)
        self._remember(at, memory)
        return data

    def receive(
        self, data: bytes, shape: tuple[int, int], dtype: torch.dtype, ids: Ids, *, draw: Draw | None = None
    ) -> Tensor:
        """What the message says about these rows; the shape is the one expected here."""
        if isinstance(self.codec, Codec):
            return self.codec.decode(data, shape, dtype, draw=draw)
        at, memory = self._recall(ids, shape[1], torch.empty(0, dtype=dtype))
        value, memory = self.codec.decode(data, memory, draw=draw)
        if self.codec.mode == "ef21":
            self._remember(at, memory)
        return value

    def see(
        self, data: bytes, shape: tuple[int, int], dtype: torch.dtype, ids: Ids, *, draw: Draw | None = None
    ) -> Tensor:
        """What the receivers make of the message that this end just sent."""
        if isinstance(self.codec, Codec):
            return self.codec.decode(data, shape, dtype, draw=draw)
        if self.codec.mode == "ef21":  # both ends remember what the receiver has
            return self._recall(ids, shape[1], torch.empty(0, dtype=dtype))[1]
        return self.codec.codec.decode(data, shape, dtype, draw=draw)

    def transmit(
        self, tensor: Tensor, ids: Ids, counts: Ids | None = None, *, draws: Sequence[Draw] | None = None
    ) -> Tensor:
        """What arrives of one message, or of many: `counts[i]` rows in the i-th (see `Codec.roundtrip_each`)."""
        if isinstance(self.codec, Codec):
            counts = np.array([len(tensor)]) if counts is None else counts
            return self.codec.roundtrip_each(tensor, counts, draws=draws)
        at, memory = self._recall(ids, tensor.shape[1], tensor)
        value, memory = self.codec.roundtrip(tensor, memory, counts, draws=draws)
        self._remember(at, memory)
        return value

    def snapshot(self) -> dict[str, Tensor]:
        """The memory, for a checkpoint; empty where there is none."""
        return {} if self._memory is None else {"memory": self._memory.clone()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        memory = tensors.get("memory")
        if memory is not None and (memory.ndim != 2 or len(memory) != self.rows):
            raise RunError(
                f"codec memory of shape {tuple(memory.shape)} for {self.rows} rows: the checkpoint is of another run"
            )
        self._memory = None if memory is None else memory.clone()

    def _recall(self, ids: Ids, width: int, like: Tensor) -> tuple[Tensor, Tensor]:
        if self._memory is None:
            self._memory = torch.zeros(self.rows, width, dtype=like.dtype, device=like.device)
        at = torch.as_tensor(ids, device=self._memory.device)
        return at, self._memory.index_select(0, at)

    def _remember(self, at: Tensor, memory: Tensor) -> None:
        assert self._memory is not None
        # Writing one row twice is undefined in torch; numpy promises that the last one stays.
        ids, last = at.cpu().numpy(), np.empty(self.rows, np.int64)
        last[ids] = np.arange(len(ids))
        source = last[ids]
        if (source != np.arange(len(ids))).any():
            memory = memory.index_select(0, torch.as_tensor(source, device=memory.device))
        self._memory.index_copy_(0, at, memory)
