"""Bit packing against by-hand examples and a plain reader."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.codecs.bits import pack, pack_positions, packed_size, positions_size, unpack, unpack_positions
from crosshatch.errors import DataError
from tests.codecs.naive import unpack_bits


@pytest.mark.parametrize(
    ("numbers", "width", "expected"),
    [
        ([1, 0, 1, 1, 0, 0, 0, 1], 1, "8d"),  # 1000 1101, the first number lowest
        ([1, 0, 1, 1, 0, 0, 0, 1, 1], 1, "8d01"),
        ([5, 2], 3, "15"),  # 010 101
        ([127] * 8, 7, "ff" * 7),
        ([1, 2], 7, "0101"),  # 10.0000001: 14 bits in two bytes
        ([1, 2, 255], 8, "0102ff"),
        ([0x0102, 0xFFFE], 16, "0201feff"),
        ([0x123456], 24, "563412"),
        ([0x1FF, 0x100, 0x0FF], 9, "ff00ff03"),
        ([], 7, ""),
    ],
)
def test_by_hand(numbers: list[int], width: int, expected: str) -> None:
    packed = pack(np.array(numbers, np.int64), width)
    assert packed.hex() == expected
    assert unpack(memoryview(packed), len(numbers), width).tolist() == numbers


@given(data=st.data(), width=st.integers(1, 40), count=st.integers(0, 70))
def test_round_trip_against_plain_reader(data: st.DataObject, width: int, count: int) -> None:
    numbers = data.draw(st.lists(st.integers(0, 2**width - 1), min_size=count, max_size=count))
    packed = pack(np.array(numbers, np.int64), width)
    assert len(packed) == packed_size(count, width) == math.ceil(count * width / 8)
    assert unpack_bits(packed, count, width) == numbers
    assert unpack(memoryview(packed), count, width).tolist() == numbers


@given(data=st.data(), n=st.integers(1, 300))
def test_positions_round_trip(data: st.DataObject, n: int) -> None:
    chosen = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    packed = pack_positions(np.array(chosen, np.int64), n)
    assert len(packed) == positions_size(n, len(chosen))
    assert unpack_positions(memoryview(packed), n, len(chosen)).tolist() == chosen


@pytest.mark.parametrize(("n", "k"), [(960_000, 9_600), (960_000, 960), (2**33, 50), (100_000, 1), (5_000, 4_999)])
def test_positions_of_large_tensors(n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(n, k, replace=False, shuffle=False))
    packed = pack_positions(chosen, n)
    assert len(packed) == positions_size(n, k)
    np.testing.assert_array_equal(unpack_positions(memoryview(packed), n, k), chosen)


@given(n=st.integers(2, 3000), data=st.data())
def test_positions_are_nearly_as_short_as_can_be(n: int, data: st.DataObject) -> None:
    """Not below log2 of the number of choices, and at most one bit a position and the rounding more."""
    k = data.draw(st.integers(1, n))
    least = math.log2(math.comb(n, k)) / 8
    assert least <= positions_size(n, k) + 1e-9
    assert positions_size(n, k) <= least + k / 8 + 2
    plain = math.ceil(k * (n - 1).bit_length() / 8)
    assert positions_size(n, k) <= min(plain, math.ceil(n / 8))


def test_positions_by_hand_elias_fano() -> None:
    """n = 64, k = 4: two low bits would take 1 + 3 bytes, four take 2 + 1: lows 3, 0, 5, 15 and highs 0, 1, 1, 3."""
    positions = np.array([3, 16, 21, 63])
    assert positions_size(64, 4) == 3
    lows, ones = 0xF503, (1 << 0) | (1 << 2) | (1 << 3) | (1 << 6)
    assert pack_positions(positions, 64) == lows.to_bytes(2, "little") + bytes([ones])


@pytest.mark.parametrize(
    ("data", "n", "k"),
    [
        (b"\x07", 8, 2),  # three ones for two positions
        (b"\x03\xf5\x00", 64, 4),  # no ones at all
        (b"\x11\x11\x0f", 64, 4),  # equal low and high parts: the same position four times
        (b"\x07", 6, 1),  # position 7 of 6
    ],
)
def test_damaged_positions(data: bytes, n: int, k: int) -> None:
    with pytest.raises(DataError, match="damaged"):
        unpack_positions(memoryview(data), n, k)
