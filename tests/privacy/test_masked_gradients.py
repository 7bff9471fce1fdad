"""The messages of one masked gradient: what comes out, and what the label's holder gets to see."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import DataError
from crosshatch.privacy.encrypted_matrix import from_bytes
from crosshatch.privacy.fixed_point import FixedPoint, exact_products
from crosshatch.privacy.masked_gradients import LabelHolder, LinearSilo, gradient, gradient_slots
from crosshatch.privacy.packing import HIDING_BITS
from tests.privacy.keys import short_key

KEY = short_key(1024)
POINT = FixedPoint(24, 16)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(1, 3), st.integers(1, 2), st.randoms(use_true_random=False))
def test_gradients(rows: int, columns: int, outputs: int, threads: int, random: object) -> None:
    draw = getattr(random, "choice")  # noqa: B009 - hypothesis gives an untyped generator
    edges = [POINT.bound, -POINT.bound, 0, 1, -1, 123456789]
    x = np.array([[draw(edges) for _ in range(columns)] for _ in range(rows)])
    d = np.array([[draw(edges) for _ in range(outputs)] for _ in range(rows)])
    holder, silo = LabelHolder(KEY, POINT, threads), LinearSilo(KEY.public, POINT, threads)
    sent, masked = silo.mask(holder.encrypt(d), x)
    found = silo.unmask(holder.decrypt(sent), masked)
    assert found == exact_products(d, x)
    means = gradient(found, POINT, rows, outputs)
    assert means.ravel().tolist() == [float(Fraction(number, rows * 2**48)) for number in found]
    assert means.shape == (outputs, columns)
    assert all(abs(number) <= gradient_slots(POINT, rows, 1024).bound for number in found)


def test_the_holder_sees_masks_alone() -> None:
    """What it reads for two gradients as far apart as can be: uniform over the masks, to one part in 2^40."""
    holder, silo = LabelHolder(KEY, POINT), LinearSilo(KEY.public, POINT)
    sent = holder.encrypt(np.full((1, 1), POINT.bound))
    masks = 1 << (gradient_slots(POINT, 1, 1024).bound.bit_length() + 1 + HIDING_BITS)
    for sign in (1, -1):
        tops = []
        for _ in range(60):
            back, _ = silo.mask(sent, np.full((1, 1), sign * POINT.bound))
            (read,) = from_bytes(holder.decrypt(back))
            tops.append(read / masks)
        assert 0 <= min(tops) < 0.2
        assert 0.8 < max(tops) < 1.01


def test_ciphertexts_of_another_length_are_refused() -> None:
    silo = LinearSilo(KEY.public, POINT)
    with pytest.raises(DataError, match="cut off, or under another key"):
        silo.mask(np.zeros((2, 256), np.uint8), np.ones((2, 1), np.int64))
