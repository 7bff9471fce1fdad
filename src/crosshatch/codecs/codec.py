"""What every codec does: numbers to bytes and back, the exact size beforehand, and the round trip without the bytes.

A codec is one stage or a chain of them. A stage takes n numbers, writes something of its own (positions, scales) and
leaves k numbers to the next stage; what the last one leaves is written as it is, little-endian. Stages work on
(m, n) arrays, one message per row: a simulator has the messages of all its clients at hand at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.errors import DataError, TrainingError
from crosshatch.seeds import generator

Array = npt.NDArray[Any]
Parts = tuple[Array, ...]
"""What a stage writes itself; each array with a leading axis of messages."""
DTypes = np.dtype[Any]

_DTYPES: dict[torch.dtype, DTypes] = {
    torch.float16: np.dtype("<f2"),
    torch.float32: np.dtype("<f4"),
    torch.float64: np.dtype("<f8"),
}


@dataclass(frozen=True)
class Draw:
    """Where a message's chance comes from: sender and receiver name the same one, so that it need not be sent.

    >>> Draw(7, "share", (3, 0)).of(12)  # round 3, local step 0, client 12
    Draw(seed=7, exchange='share', numbers=(3, 0, 12))
    """

    seed: int
    exchange: str
    numbers: tuple[int, ...] = ()

    def of(self, *numbers: int) -> Draw:
        """The same with more numbers, for example the silo and the client that send."""
        return Draw(self.seed, self.exchange, self.numbers + numbers)

    def generator(self) -> np.random.Generator:
        return generator(self.seed, f"codec {self.exchange}", *self.numbers)


Undo: TypeAlias = "list[tuple[Stage, Parts, int, DTypes]]"
"""What the stages of a message did, in order: stage, what it wrote, how many numbers of which type it was given."""


class Codec(ABC):
    """Numbers to bytes and back. Tensors may have any shape; a message is one tensor, encoded as a whole.

    >>> from crosshatch import TopK
    >>> codec: Codec = TopK(0.25)
    >>> len(codec.encode(torch.arange(8.0))), codec.size((8,), torch.float32)
    (9, 9)
    """

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """What is done, in order."""

    @final
    @property
    def lossless(self) -> bool:
        """Whether what arrives is what was sent, bit for bit, whatever the shape."""
        return all(stage.keeps_all for stage in self.stages)

    @final
    def size(self, shape: Sequence[int], dtype: torch.dtype) -> int:
        """Exactly the length of what `encode` writes for a tensor of this shape."""
        n, kind, total = prod(shape), _kind(dtype), 0
        for stage in self.stages:
            total += stage.side_size(n, kind) if n else 0
            n, kind = stage.kept(n), stage.kind(kind)
        return total + n * kind.itemsize

    @final
    def encode(self, tensor: Tensor, *, draw: Draw | None = None) -> bytes:
        """The tensor as bytes; random codecs need the draw."""
        return _write(*self._reduce(_rows(tensor, 1), [draw]))

    @final
    def encode_and_roundtrip(self, tensor: Tensor, *, draw: Draw | None = None) -> tuple[bytes, Tensor]:
        """The bytes and what the receiver will make of them, for a sender that has to know."""
        undo, values = self._reduce(_rows(tensor, 1), [draw])
        return _write(undo, values), torch.from_numpy(_restore(undo, values)).reshape(tensor.shape).to(tensor.device)

    @final
    def decode(self, data: bytes, shape: Sequence[int], dtype: torch.dtype, *, draw: Draw | None = None) -> Tensor:
        """What `encode` wrote, as a new tensor.

        The shape is what the receiver expects of this exchange, never what a message claims; the length is compared
        with it before any memory is taken.
        """
        due = self.size(shape, dtype)
        if len(data) != due:
            raise DataError(
                f"message of {len(data)} bytes where {self} of shape {tuple(shape)} takes {due}: cut off, or do sender "
                "and receiver have different codecs?"
            )
        if not due:
            return torch.zeros(tuple(shape), dtype=dtype)
        view, n, kind = memoryview(data), prod(shape), _kind(dtype)
        undo: Undo = []
        for stage in self.stages:
            taken = stage.side_size(n, kind)
            undo.append((stage, stage.read(view[:taken], n, kind, draw), n, kind))
            view, n, kind = view[taken:], stage.kept(n), stage.kind(kind)
        values = np.frombuffer(view, kind).reshape(1, n).copy()
        return torch.from_numpy(_restore(undo, values)).reshape(tuple(shape))

    @final
    def roundtrip(self, tensor: Tensor, *, draw: Draw | None = None) -> Tensor:
        """`decode(encode(tensor))`, bit for bit, without making the bytes; shares the tensor's memory if lossless."""
        return self._roundtrip(tensor, 1, [draw])

    @final
    def roundtrip_each(
        self, tensor: Tensor, counts: npt.NDArray[np.int64], *, draws: Sequence[Draw] | None = None
    ) -> Tensor:
        """The round trips of many messages: rows (n, width) of one tensor, the first `counts[0]` in the first message.

        >>> from crosshatch.codecs import TopK
        >>> TopK(0.5).roundtrip_each(torch.tensor([[1.0, 2.0], [30.0, 40.0]]), np.array([1, 1])).tolist()
        [[0.0, 2.0], [0.0, 40.0]]
        """
        assert int(counts.sum()) == len(tensor), "counts must add up to the rows"
        given: Sequence[Draw | None] = [None] * len(counts) if draws is None else draws
        sizes = np.unique(counts)
        if len(sizes) == 1 and sizes[0]:
            return self._roundtrip(tensor, len(counts), given)
        out, starts = torch.empty_like(tensor), np.cumsum(counts) - counts
        for size in sizes[sizes > 0]:
            (which,) = np.nonzero(counts == size)
            rows = torch.from_numpy((starts[which, None] + np.arange(size)).reshape(-1)).to(tensor.device)
            some = self._roundtrip(tensor.index_select(0, rows), len(which), [given[i] for i in which.tolist()])
            out.index_copy_(0, rows, some)
        return out

    def _roundtrip(self, tensor: Tensor, messages: int, draws: Sequence[Draw | None]) -> Tensor:
        undo, values = self._reduce(_rows(tensor, messages), draws)
        return torch.from_numpy(_restore(undo, values)).reshape(tensor.shape).to(tensor.device)

    def _reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Undo, Array]:
        """What each stage did, and the numbers the last one left; an empty tensor is left alone."""
        undo: Undo = []
        for stage in self.stages if values.size else ():
            n, kind = values.shape[1], values.dtype
            parts, values = stage.reduce(values, draws)
            undo.append((stage, parts, n, kind))
        return undo, values


class Stage(Codec):
    """One step of a codec, and a codec by itself; unless it says otherwise it leaves as many numbers of the same type.

    >>> from crosshatch import Chain, Half, TopK
    >>> [type(stage).__name__ for stage in Chain(TopK(0.5), Half()).stages]
    ['TopK', 'Half']
    """

    @final
    @property
    def stages(self) -> tuple[Stage, ...]:
        return (self,)

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is lost, whatever the shape; a stage that does not say so loses something."""
        return False

    def kept(self, n: int) -> int:
        """Of n numbers, how many are left to the next stage."""
        return n

    def kind(self, kind: DTypes) -> DTypes:
        """The type of those numbers."""
        return kind

    def side_size(self, n: int, kind: DTypes) -> int:  # noqa: ARG002
        """Bytes this stage writes itself, for n > 0 numbers."""
        return 0

    @abstractmethod
    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:
        """What it writes itself, and the numbers left (m, kept), of values (m, n)."""

    def write(self, parts: Parts, n: int) -> bytes:  # noqa: ARG002
        """Its own part of one message (m = 1)."""
        return b""

    def read(self, data: memoryview, n: int, kind: DTypes, draw: Draw | None) -> Parts:  # noqa: ARG002
        """The opposite of `write`, from exactly `side_size` bytes."""
        return ()

    @abstractmethod
    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:
        """The opposite of `reduce`, as well as it can be done: (m, n)."""


class Step(Stage):
    """What is sent is `change` of the numbers, once per message; the receiver takes it as it comes.

    A step stands alone or in a chain, before the stages that make a message shorter.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from crosshatch.codecs import Chain, Half
    >>> @dataclass(frozen=True)
    ... class Clip(Step):
    ...     most: float  # Euclidean length of a message
    ...     def change(self, values, draws):
    ...         lengths = np.linalg.norm(values, axis=1, keepdims=True)
    ...         return values * np.minimum(1, self.most / np.maximum(lengths, 1e-300))
    >>> Chain(Clip(1.0), Half()).roundtrip(torch.tensor([30.0, 40.0]))
    tensor([0.6001, 0.7998])
    """

    @abstractmethod
    def change(self, values: Array, draws: Sequence[Draw | None]) -> Array:
        """What is sent instead of values (m, n), a message per row; its draw names each one."""

    @final
    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:
        """Nothing besides, and the changed numbers, as many and of the same type."""
        require_finite(np.abs(values).max(axis=1))
        changed = self.change(values, draws)
        assert changed.shape == values.shape, f"{type(self).__name__}.change returns {changed.shape} for {values.shape}"
        return (), changed.astype(values.dtype, copy=False)

    @final
    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:  # noqa: ARG002
        return values


def require_finite(extreme: Array) -> None:
    """Refuse what cannot be ordered or scaled; the largest magnitude of each message is enough to see it."""
    if not np.isfinite(extreme).all():
        raise TrainingError("values to be sent are no longer finite, training diverged: lower algorithm.step_size")


def _write(undo: Undo, values: Array) -> bytes:
    return b"".join([*(stage.write(parts, n) for stage, parts, n, _ in undo), values.tobytes()])


def _restore(undo: Undo, values: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # whatever a message holds; training notices what is not finite
        for stage, parts, n, kind in reversed(undo):
            values = stage.restore(parts, values, n, kind)
    return values


def _kind(dtype: torch.dtype) -> DTypes:
    if dtype not in _DTYPES:
        raise DataError(f"a codec encodes float16, float32 or float64, not {dtype}: convert the tensor first")
    return _DTYPES[dtype]


def _rows(tensor: Tensor, messages: int) -> Array:
    _kind(tensor.dtype)
    array: Array = tensor.detach().cpu().contiguous().numpy().reshape(messages, -1 if tensor.numel() else 0)
    return array
