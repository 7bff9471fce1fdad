"""The quantiser against a search over all levels, its error bound, and its bytes by hand."""

from __future__ import annotations

import struct

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.codecs import Quantise
from crosshatch.errors import ConfigError, DataError, TrainingError
from tests.codecs import naive

floats = st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=50)


@given(values=floats, levels=st.sampled_from([2, 3, 4, 5, 16, 17, 128]))
def test_against_a_search_over_all_levels(values: list[float], levels: int) -> None:
    arrived = Quantise(levels).roundtrip(torch.tensor(values, dtype=torch.float64)).tolist()
    span = max(values) - min(values)
    for value, ours, nearest in zip(values, arrived, naive.quantise(values, levels), strict=True):
        assert abs(ours - value) == pytest.approx(abs(nearest - value), abs=1e-12 * (1 + span + abs(value)))


@given(values=floats, levels=st.integers(2, 2**24))
def test_error_bound(values: list[float], levels: int) -> None:
    x = torch.tensor(values, dtype=torch.float32)
    arrived = Quantise(levels).roundtrip(x)
    span = max(values) - min(values)
    rounding = 2.0**-24 * max(abs(value) for value in values)  # of the result to float32
    assert float((arrived.double() - x.double()).abs().max()) <= span / (levels - 1) / 2 * (1 + 1e-9) + rounding


@given(values=floats, levels=st.integers(2, 2**24))
def test_ends_stay_and_a_second_time_changes_nothing(values: list[float], levels: int) -> None:
    x = torch.tensor(values, dtype=torch.float32)
    once = Quantise(levels).roundtrip(x)
    rounding = 1e-15 * (max(values) - min(values))
    assert float(once.min()) == min(values)
    assert float(once.max()) == pytest.approx(max(values), rel=0, abs=rounding)
    if levels <= 2**16:  # with more, neighbouring levels may be one float32
        torch.testing.assert_close(Quantise(levels).roundtrip(once), once, rtol=2e-7, atol=rounding)


@pytest.mark.parametrize(
    ("levels", "bits"), [(2, 1), (3, 2), (4, 2), (5, 3), (128, 7), (129, 8), (256, 8), (2**23 + 1, 24), (2**24, 24)]
)
def test_bits_a_value(levels: int, bits: int) -> None:
    assert Quantise(levels).size((100, 8), torch.float32) == 8 + 100 * bits
    assert Quantise(levels).size((100, 8), torch.float64) == 16 + 100 * bits


def test_bytes_by_hand() -> None:
    """Levels 0, 1, 3, 2 of 0..3: 10 11 01 00, after the two scales."""
    x = torch.tensor([[1.0, 2.0], [4.0, 3.1]])
    assert Quantise(4).encode(x) == struct.pack("<ff", 1.0, 4.0) + bytes([0b10110100])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_constant_tensor(dtype: torch.dtype) -> None:
    x = torch.full((3, 4), -2.5, dtype=dtype)
    assert torch.equal(Quantise(128).roundtrip(x), x)


def test_tiny_and_huge_spans() -> None:
    tiny = torch.tensor([0.0, 5e-324, 1e-323], dtype=torch.float64)
    assert torch.equal(Quantise(3).roundtrip(tiny), tiny)
    wide = torch.tensor([-3e38, 0.0, 3e38])
    assert torch.equal(Quantise(3).roundtrip(wide), wide)
    with pytest.raises(TrainingError, match="no longer finite"):
        Quantise(3).roundtrip(torch.tensor([-1.7e308, 1.7e308], dtype=torch.float64))


@pytest.mark.parametrize("levels", [1, 0, -5, 2**24 + 1, 2.5, True, "128"])
def test_bad_levels(levels: int) -> None:
    with pytest.raises(ConfigError, match="levels from 2 to 16777216"):
        Quantise(levels)


@pytest.mark.parametrize(
    ("scales", "packed", "message"),
    [
        ((float("nan"), 1.0), b"\0", "damaged"),
        ((0.0, float("inf")), b"\0", "damaged"),
        ((2.0, 1.0), b"\0", "damaged"),
        ((0.0, 1.0), b"\x03", "level 3 of 3"),
    ],
)
def test_damaged_messages(scales: tuple[float, float], packed: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Quantise(3).decode(struct.pack("<ff", *scales) + packed, (4,), torch.float32)
