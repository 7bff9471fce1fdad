"""Error feedback: what a codec left out is not lost, it is sent later.

"ef21", the default, as EF-VFL does it: both ends keep, for every sample, what the receiver has of it so far. The sender
encodes the difference, both add what arrives to their memory, and the memory is what the receiver uses:

    c = C(x - m)        m <- m + c        the receiver has m

"accumulate", the classical form: the sender alone keeps what is still owed, the receiver uses what arrives:

    c = C(x + e)        e <- x + e - c    the receiver has c

The first suits embeddings, which converge; the second suits updates, whose sum matters. Memory starts at zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.codecs.codec import Codec, Draw
from crosshatch.codecs.sparse import RandomK
from crosshatch.errors import ConfigError

Mode = Literal["ef21", "accumulate"]


@dataclass(frozen=True)
class ErrorFeedback:
    """A codec with a memory. Its methods are pure: memory (n, width) of the rows at hand goes in, the new comes out.

    A codec that loses nothing is not fed back, so that error feedback over it changes nothing, to the last bit.

    >>> x, memory = torch.tensor([[3.0, 2.0, 1.0]]), torch.zeros(1, 3)
    >>> from crosshatch.codecs import TopK
    >>> for _ in range(3):
    ...     arrived, memory = ErrorFeedback(TopK(k=1)).roundtrip(x, memory)
    >>> arrived.tolist()
    [[3.0, 2.0, 1.0]]
    """

    codec: Codec
    mode: Mode = "ef21"

    def __post_init__(self) -> None:
        if not isinstance(self.codec, Codec):
            raise ConfigError(f"error feedback goes around a codec or a chain of codecs, not {self.codec}")
        if self.mode not in get_args(Mode):
            raise ConfigError(f"unknown error feedback {self.mode!r}: choose one of {', '.join(get_args(Mode))}")
        for stage in self.codec.stages:
            if isinstance(stage, RandomK) and stage.unbiased:
                raise ConfigError(f"error feedback over {stage} diverges: its scaling overshoots, leave out unbiased")

    def __str__(self) -> str:
        return f"ef({self.codec}{', accumulate' if self.mode == 'accumulate' else ''})"

    def size(self, shape: Sequence[int], dtype: torch.dtype) -> int:
        return self.codec.size(shape, dtype)

    def encode(self, tensor: Tensor, memory: Tensor, *, draw: Draw | None = None) -> tuple[bytes, Tensor]:
        """The sender's half: the bytes, and its new memory."""
        due = self._due(tensor, memory)
        data, decoded = self.codec.encode_and_roundtrip(due, draw=draw)
        return data, self._sent(due, memory, decoded)

    def decode(self, data: bytes, memory: Tensor, *, draw: Draw | None = None) -> tuple[Tensor, Tensor]:
        """The receiver's half: the value, and its new memory (which "accumulate" leaves as it is)."""
        value = self._arrived(self.codec.decode(data, memory.shape, memory.dtype, draw=draw).to(memory.device), memory)
        return value, (value if self.mode == "ef21" else memory)

    def roundtrip(
        self,
        tensor: Tensor,
        memory: Tensor,
        counts: npt.NDArray[np.int64] | None = None,
        *,
        draws: Sequence[Draw] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Both halves without the bytes, of one message or of many (see `Codec.roundtrip_each`)."""
        due = self._due(tensor, memory)
        counts = np.array([len(tensor)]) if counts is None else counts
        decoded = self.codec.roundtrip_each(due, counts, draws=draws)
        return self._arrived(decoded, memory), self._sent(due, memory, decoded)

    def _due(self, tensor: Tensor, memory: Tensor) -> Tensor:
        assert tensor.shape == memory.shape, f"memory {tuple(memory.shape)} for a tensor {tuple(tensor.shape)}"
        if self.mode == "accumulate":
            return tensor + memory
        return tensor if self.codec.lossless else tensor - memory

    def _arrived(self, decoded: Tensor, memory: Tensor) -> Tensor:
        return decoded if self.mode == "accumulate" or self.codec.lossless else memory + decoded

    def _sent(self, due: Tensor, memory: Tensor, decoded: Tensor) -> Tensor:
        return due - decoded if self.mode == "accumulate" else self._arrived(decoded, memory)


AnyCodec: TypeAlias = Codec | ErrorFeedback
