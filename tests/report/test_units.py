"""Every formatted value, read back, is close to the one given; and units change where they should."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.report.units import human_bytes, human_count, human_factor, human_number, human_seconds

BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}


@given(st.integers(0, 10**17))
def test_bytes_read_back(count: int) -> None:
    number, unit = human_bytes(count).split(" ")
    assert float(number) * BYTES[unit] == pytest.approx(count, rel=0.006)
    assert float(number) < 1000


@given(st.floats(1e-9, 1e8))
def test_seconds_read_back(seconds: float) -> None:
    pieces = re.findall(r"([\d.]+) (\w+)", human_seconds(seconds))
    total = sum(float(number) * SECONDS[unit] for number, unit in pieces)
    # the coarsest is 1 d 0 h: half an hour in a day
    assert total == pytest.approx(seconds, rel=0.025)
    assert all(float(number) < 60 for number, unit in pieces if unit in ("s", "min"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (human_bytes(999), "999 B"),
        (human_bytes(1000), "1 kB"),
        (human_bytes(999_499), "999 kB"),
        (human_bytes(999_500), "1 MB"),
        (human_bytes(10.0**20), "100 EB"),
        (human_seconds(0), "0 s"),
        (human_seconds(0.9999), "1 s"),
        (human_seconds(59.96), "1 min 00 s"),
        (human_seconds(3599.6), "1 h 00 min"),
        (human_seconds(86399), "1 d 0 h"),
        (human_seconds(9_999 * 86400), "9999 d 0 h"),
        (human_seconds(1e9), "32 years"),
        (human_seconds(1e300), "3.17e+292 years"),
        (human_seconds(float("nan")), "not a number"),
        (human_number(float("inf")), "infinite"),
        (human_number(-float("inf")), "minus infinite"),
        (human_number(0.00001234), "1.234e-05"),
        (human_count(float("nan")), "not a number"),
        (human_factor(2.0), "2x"),
        (human_factor(2.96), "3x"),
    ],
)
def test_edges(text: str, expected: str) -> None:
    assert text == expected
