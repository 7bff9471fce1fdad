"""Fixed point: rounding to the nearest, exact products, and refusals instead of wrapping."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crosshatch.errors import ConfigError, TrainingError
from crosshatch.privacy.fixed_point import FixedPoint, exact_products

EDGE = 2**60


@given(st.integers(8, 44), st.floats(-65536, 65536))
def test_encoding_rounds_to_the_nearest(bits: int, value: float) -> None:
    point = FixedPoint(bits, 16)
    (found,) = point.encode(np.array([value])).tolist()
    assert abs(Fraction(found, 2**bits) - Fraction(value)) <= Fraction(1, 2 ** (bits + 1))
    assert abs(found) <= point.bound


@given(st.floats(-16, 16), st.floats(-16, 16))
def test_products_decode_to_the_stated_precision(a: float, b: float) -> None:
    point = FixedPoint(24, 4)
    product = int(point.encode(np.array([a]))[0]) * int(point.encode(np.array([b]))[0])
    step = 2.0**-25  # half a step of each
    assert abs(point.decode([product], factors=2)[0] - a * b) <= step * (abs(a) + abs(b)) + 2 * step**2 + 1e-12


def test_a_mean_is_rounded_once() -> None:
    point = FixedPoint(24, 16)
    assert point.decode([7 * 2**48 + 1], factors=2, divisor=3)[0] == float(Fraction(7 * 2**48 + 1, 3 * 2**48))


@given(
    arrays.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 3)), elements=st.integers(-EDGE, EDGE)),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_products_of_long_numbers_are_exact(left: np.ndarray, columns: int, random: object) -> None:
    draw = getattr(random, "choice")  # noqa: B009 - hypothesis gives an untyped generator
    right = np.array([[draw([-EDGE, EDGE, 0, 1, -1, 12345, -(2**40)]) for _ in range(columns)] for _ in left])
    naive = [
        sum(int(left[i, a]) * int(right[i, b]) for i in range(len(left)))
        for a in range(left.shape[1])
        for b in range(columns)
    ]
    assert exact_products(left, right) == naive


@pytest.mark.parametrize("value", [65536.1, -1e30, 2.0**17])
def test_outside_of_the_range_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match=r"privacy.whole_bits = 16: fixed point goes from -65536 to 65536, and x is"):
        FixedPoint(24, 16).encode(np.array([0.0, value]), "x")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_not_finite_is_refused(value: float) -> None:
    with pytest.raises(TrainingError, match="a number is not finite"):
        FixedPoint().encode(np.array([value]))


@pytest.mark.parametrize(
    ("fraction", "whole", "words"),
    [
        (4, 16, "privacy.fraction_bits = 4: must be at least 8"),
        (60, 0, "privacy.fraction_bits = 60"),
        (24, -1, "privacy.whole_bits = -1: must be at least 0"),
        (40, 40, "at most 60 together"),
        (24.0, 16, "must be a whole number"),
    ],
)
def test_impossible_bits_are_refused(fraction: int, whole: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        FixedPoint(fraction, whole)
