"""Whole numbers in as few bits as their range needs, and sets of positions in about log2(n / k) + 2 bits each.

Both sizes depend on counts alone, never on the numbers: a message's length is known before it is made.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from crosshatch.errors import DataError

Whole = npt.NDArray[np.uint32 | np.uint64]
Positions = npt.NDArray[np.int64]


def packed_size(count: int, width: int) -> int:
    """Bytes of `count` numbers of `width` bits."""
    return (count * width + 7) // 8


def pack(numbers: npt.NDArray[np.integer], width: int) -> bytes:
    """Numbers (count,) below 2**width as `packed_size` bytes, for widths up to 56.

    First the whole low bytes of every number, then the remaining high bits, eight numbers per group, the first in the
    lowest bits. The two planes are as short as one stream of bits, and many times faster to make.

    >>> pack(np.array([1, 2, 3]), 4).hex()  # 3 | 21
    '2103'
    >>> pack(np.array([0x1AB, 0x0CD]), 9).hex()  # low bytes AB CD, then the ninth bits 0 | 1
    'abcd01'
    """
    count, (whole, rest) = len(numbers), divmod(width, 8)
    little = numbers.astype("<u4" if width <= 32 else "<u8")
    places = little.view(np.uint8).reshape(count, little.itemsize)
    low = places[:, :whole].tobytes()
    if not rest:
        return low
    groups = np.zeros((-(-count // 8), 8), np.uint8)
    groups.reshape(-1)[:count] = places[:, whole]
    words = np.zeros(len(groups), "<u8")
    for place in range(8):
        words |= groups[:, place].astype("<u8") << np.uint64(place * rest)
    high = words.view(np.uint8).reshape(len(groups), 8)[:, :rest].tobytes()
    return low + high[: packed_size(count, rest)]


def unpack(data: memoryview, count: int, width: int) -> Whole:
    """The `count` numbers that `pack` wrote into `data` of exactly `packed_size` bytes."""
    assert len(data) == packed_size(count, width)
    whole, rest = divmod(width, 8)
    numbers = np.zeros(count, "<u4" if width <= 32 else "<u8")
    places = numbers.view(np.uint8).reshape(count, numbers.itemsize)
    places[:, :whole] = np.frombuffer(data[: count * whole], np.uint8).reshape(count, whole)
    if rest:
        high = np.zeros(-(-count // 8) * rest, np.uint8)
        tail = np.frombuffer(data[count * whole :], np.uint8)
        high[: len(tail)] = tail
        words = np.zeros(len(high) // rest, "<u8")
        words.view(np.uint8).reshape(-1, 8)[:, :rest] = high.reshape(-1, rest)
        groups = np.empty((len(words), 8), np.uint8)
        for place in range(8):
            groups[:, place] = (words >> np.uint64(place * rest)) & np.uint64((1 << rest) - 1)
        places[:, whole] = groups.reshape(-1)[:count]
    return numbers


@lru_cache(maxsize=65536)
def _layout(n: int, k: int) -> tuple[int, int]:
    """Low bits kept for each of k positions below n, and the length of the bit map of their high parts.

    The shortest of: no bytes (all positions), a map of n bits, packed positions, and Elias-Fano, where a map of
    `k + (n - 1 >> low)` bits has a one for each position, as many places further as its high part and its rank say.
    """
    if k in (0, n):
        return 0, 0
    widths = range(1, (n - 1).bit_length() + 1)
    layouts = [(0, n)] + [(low, k + ((n - 1) >> low) if (n - 1) >> low else 0) for low in widths]
    return min(layouts, key=lambda layout: packed_size(k, layout[0]) + packed_size(layout[1], 1))


def positions_size(n: int, k: int) -> int:
    """Bytes of k different positions below n.

    >>> positions_size(1000, 10), positions_size(1000, 600), positions_size(1000, 1000)
    (12, 125, 0)
    """
    low, bits = _layout(n, k)
    return packed_size(k, low) + packed_size(bits, 1)


def pack_positions(positions: Positions, n: int) -> bytes:
    """Different, increasing positions (k,) below n as `positions_size` bytes.

    >>> pack_positions(np.array([1, 3]), 8).hex()  # a map of eight bits
    '0a'
    """
    low, bits = _layout(n, len(positions))
    lowest = pack(positions & ((1 << low) - 1), low) if low else b""
    if not bits:
        return lowest
    ones = np.zeros(bits, np.uint8)
    ones[(positions >> low) + np.arange(len(positions)) if low else positions] = 1
    return lowest + np.packbits(ones, bitorder="little").tobytes()


def unpack_positions(data: memoryview, n: int, k: int) -> Positions:
    """The positions (k,) that `pack_positions` wrote into `data` of exactly `positions_size` bytes."""
    assert len(data) == positions_size(n, k)
    if k == n:
        return np.arange(n)
    low, bits = _layout(n, k)
    split = packed_size(k, low)
    positions: Positions = np.zeros(k, np.int64)
    if bits:
        ones = np.flatnonzero(np.unpackbits(np.frombuffer(data[split:], np.uint8), count=bits, bitorder="little"))
        if len(ones) != k:
            raise DataError(f"message marks {len(ones)} of {n} positions where {k} are expected: damaged or not ours")
        positions = (ones - np.arange(k)) << low if low else ones
    if low:
        positions = positions | unpack(data[:split], k, low).astype(np.int64)
    if k and (positions[-1] >= n or (np.diff(positions) <= 0).any()):
        raise DataError(f"message has positions out of order or beyond {n}: damaged or not ours")
    return positions
