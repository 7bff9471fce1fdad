"""Uniform quantisation: every number becomes one of b levels between the tensor's least and greatest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosshatch.codecs.bits import pack, packed_size, unpack
from crosshatch.codecs.codec import Array, Draw, DTypes, Parts, Stage, require_finite
from crosshatch.errors import ConfigError, DataError

_MOST = 2**24


@dataclass(frozen=True)
class Quantise(Stage):
    """`levels` levels, equally far apart from least to greatest; the nearest one is sent, in ceil(log2(levels)) bits.

    Least and greatest are sent too, in the tensor's own precision. No number is off by more than half a step,
    (greatest - least) / (levels - 1) / 2, and rounding to that precision. The arithmetic is in double precision.

    >>> import torch
    >>> Quantise(3).roundtrip(torch.tensor([0.0, 0.2, 0.9, 2.0])).tolist()
    [0.0, 0.0, 1.0, 2.0]
    >>> Quantise(128).size((100,), torch.float32)  # two scales and 7 bits each
    96
    """

    levels: int

    def __post_init__(self) -> None:
        if isinstance(self.levels, bool) or not isinstance(self.levels, int) or not 2 <= self.levels <= _MOST:
            raise ConfigError(f"quantise needs a whole number of levels from 2 to {_MOST}, got {self.levels!r}")

    def __str__(self) -> str:
        return f"quantise({self.levels})"

    @property
    def width(self) -> int:
        return (self.levels - 1).bit_length()

    def kept(self, n: int) -> int:  # noqa: ARG002
        """None: it writes them all itself."""
        return 0

    def side_size(self, n: int, kind: DTypes) -> int:
        return 2 * kind.itemsize + packed_size(n, self.width)

    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:  # noqa: ARG002
        """Scales (m, 2) in the values' type and levels (m, n), whole numbers held as float64; nothing is left."""
        scales = np.stack([values.min(axis=1), values.max(axis=1)], axis=1)
        least, span = _span(scales)
        require_finite(span)
        levels = values.astype(np.float64)
        levels -= least
        levels /= np.where(span > 0, span, 1.0)
        levels *= self.levels - 1
        return (scales, np.rint(levels, out=levels)), np.empty((len(values), 0), values.dtype)

    def write(self, parts: Parts, n: int) -> bytes:  # noqa: ARG002
        scales, levels = parts
        return bytes(scales.tobytes() + pack(levels[0].astype(np.uint32), self.width))

    def read(self, data: memoryview, n: int, kind: DTypes, draw: Draw | None) -> Parts:  # noqa: ARG002
        head = 2 * kind.itemsize
        scales = np.frombuffer(data[:head], kind).reshape(1, 2)
        if not np.isfinite(scales).all() or not 0 <= float(_span(scales)[1][0, 0]) < np.inf:
            raise DataError(f"message is quantised from {scales[0, 0]} to {scales[0, 1]}: damaged or not ours")
        levels = unpack(data[head:], n, self.width)
        if levels.max(initial=0) >= self.levels:
            raise DataError(f"message has level {levels.max()} of {self.levels}: damaged, or another number of levels")
        return scales, levels[None]

    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:  # noqa: ARG002
        least, span = _span(parts[0])
        out = parts[1] / float(self.levels - 1)
        out *= span
        out += least
        return out.astype(kind)


def _span(scales: Array) -> tuple[Array, Array]:
    """Least and greatest less least, in double precision, (m, 1) each; not finite if the two are too far apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        wide = scales.astype(np.float64)
        return wide[:, :1], wide[:, 1:] - wide[:, :1]
