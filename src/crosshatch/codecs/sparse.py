"""Codecs that send some of the numbers; the others arrive as zero."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from crosshatch.codecs.bits import pack_positions, positions_size, unpack_positions
from crosshatch.codecs.codec import Array, Draw, DTypes, Parts, Stage, require_finite
from crosshatch.errors import ConfigError


@dataclass(frozen=True)
class TopK(Stage):
    """The k numbers of largest magnitude of the whole tensor stay; of equal ones, those that stand first.

    Give a fraction of the tensor's entries (rounded down, at least one entry, as in EF-VFL) or their number k. The
    positions are sent too, in about log2(1 / fraction) + 2 bits each.

    >>> import torch
    >>> TopK(0.5).roundtrip(torch.tensor([1.0, -3.0, 2.0, 0.0])).tolist()
    [0.0, -3.0, 2.0, 0.0]
    """

    fraction: float | None = None
    _: KW_ONLY
    k: int | None = None

    def __post_init__(self) -> None:
        if (self.fraction is None) == (self.k is None):
            found = "has neither" if self.k is None else "has both"
            raise ConfigError(f"topk takes a fraction or k and {found}: write topk(0.01), or topk(k=100)")
        if self.fraction is not None:
            _check_fraction("topk", self.fraction, "; for a number of entries say k=")
        elif isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ConfigError(f"topk needs k >= 1 (whole entries of a tensor), got {self.k!r}: keep at least one")

    def __str__(self) -> str:
        return f"topk(k={self.k})" if self.fraction is None else f"topk({self.fraction})"

    @property
    def keeps_all(self) -> bool:
        return self.fraction == 1

    def kept(self, n: int) -> int:
        return _share(self.fraction, n) if self.fraction is not None else min(n, self.k or n)

    def side_size(self, n: int, kind: DTypes) -> int:  # noqa: ARG002
        return positions_size(n, self.kept(n))

    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:  # noqa: ARG002
        """Positions (m, k), increasing, and the numbers there."""
        n, k = values.shape[1], self.kept(values.shape[1])
        if k == n:
            return (np.broadcast_to(np.arange(n), values.shape),), values
        magnitude = np.abs(values)
        require_finite(magnitude.max(axis=1))
        least = np.partition(magnitude, n - k, axis=1)[:, n - k, None]
        stays = magnitude >= least
        (tied,) = np.nonzero(stays.sum(axis=1) > k)
        if len(tied):
            above, equal = magnitude[tied] > least[tied], magnitude[tied] == least[tied]
            room = k - above.sum(axis=1, keepdims=True)
            stays[tied] = above | (equal & (np.cumsum(equal, axis=1) <= room))
        at = np.flatnonzero(stays).reshape(-1, k)
        return (at - np.arange(0, values.size, n)[:, None],), values.reshape(-1)[at]

    def write(self, parts: Parts, n: int) -> bytes:
        return pack_positions(parts[0][0], n)

    def read(self, data: memoryview, n: int, kind: DTypes, draw: Draw | None) -> Parts:  # noqa: ARG002
        return (unpack_positions(data, n, self.kept(n))[None],)

    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:
        return _spread(parts[0], values, n, kind)


@dataclass(frozen=True)
class RandomK(Stage):
    """A fraction of the entries (rounded down, at least one), drawn anew for every message; positions are not sent.

    Both ends draw them from the shared seed. `unbiased` scales what arrives by n / k, so that it is right on average.

    >>> import torch
    >>> x, draw = torch.ones(8), Draw(7, "share", (0,))
    >>> codec = RandomK(0.25, unbiased=True)
    >>> len(codec.encode(x, draw=draw)), float(codec.roundtrip(x, draw=draw).sum())
    (8, 8.0)
    """

    fraction: float
    _: KW_ONLY
    unbiased: bool = False

    def __post_init__(self) -> None:
        _check_fraction("randomk", self.fraction, "")
        if not isinstance(self.unbiased, bool):
            raise ConfigError(f"randomk: unbiased is true or false, got {self.unbiased!r}")

    def __str__(self) -> str:
        return f"randomk({self.fraction}{', unbiased' if self.unbiased else ''})"

    @property
    def keeps_all(self) -> bool:
        return self.fraction == 1

    def kept(self, n: int) -> int:
        return _share(self.fraction, n)

    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:
        """Positions (m, k), increasing, and the numbers there."""
        n = values.shape[1]
        positions = np.stack([self._positions(n, draw) for draw in draws])
        return (positions,), np.take_along_axis(values, positions, axis=1)

    def read(self, data: memoryview, n: int, kind: DTypes, draw: Draw | None) -> Parts:  # noqa: ARG002
        """The positions are drawn again, not sent."""
        return (self._positions(n, draw)[None],)

    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:
        if self.unbiased:
            values = (values * (n / values.shape[1])).astype(kind)
        return _spread(parts[0], values, n, kind)

    def _positions(self, n: int, draw: Draw | None) -> Array:
        k = self.kept(n)
        if k == n:
            return np.arange(n)
        if draw is None:
            raise ConfigError(f"{self} draws positions that both ends must agree on: give the message's draw")
        return np.sort(draw.generator().choice(n, k, replace=False, shuffle=False))


def _check_fraction(codec: str, fraction: object, hint: str) -> None:
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction <= 1:
        raise ConfigError(f"{codec} needs a fraction above 0 and at most 1, got {fraction!r}{hint}")


@lru_cache(maxsize=4096)
def _share(fraction: float, n: int) -> int:
    """The fraction as written: 0.29 of 100 are 29, though the nearest binary number is a little below."""
    return max(min(n, 1), int(Fraction(repr(fraction)) * n))


def _spread(positions: Array, values: Array, n: int, kind: DTypes) -> Array:
    if values.shape[1] == n:
        return values.astype(kind, copy=False)
    out = np.zeros((len(values), n), kind)
    np.put_along_axis(out, positions, values, axis=1)
    return out
