"""The messages of one masked gradient: what comes out, and what the label's holder gets to see."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import MessageError
from crosshatch.privacy.encrypted_matrix import read_numbers
from crosshatch.privacy.fixed_point import FixedPoint, exact_products
from crosshatch.privacy.masked_gradients import LabelHolder, LinearSilo, Reads, gradient, gradient_slots
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
    encrypted = holder.encrypt(d, {"silo 'a'": columns})
    sent, masked = silo.mask(encrypted, x, outputs=outputs, peer="the holder")
    found = silo.unmask(holder.decrypt(sent, peer="silo 'a'"), masked, peer="the holder")
    assert found == exact_products(d, x)
    means = gradient(found, POINT, rows, outputs)
    assert means.ravel().tolist() == [float(Fraction(number, rows * 2**48)) for number in found]
    assert means.shape == (outputs, columns)
    assert all(abs(number) <= gradient_slots(POINT, rows, 1024).bound for number in found)


def test_the_holder_sees_masks_alone() -> None:
    """What it reads for two gradients as far apart as can be: uniform over all numbers below n."""
    holder, silo = LabelHolder(KEY, POINT), LinearSilo(KEY.public, POINT)
    for sign in (1, -1):
        tops = []
        for _ in range(60):
            sent = holder.encrypt(np.full((1, 1), POINT.bound), {"silo 'a'": 1})
            back, _ = silo.mask(sent, np.full((1, 1), sign * POINT.bound), outputs=1, peer="the holder")
            (read,) = read_numbers(holder.decrypt(back, peer="silo 'a'"), 1, 128, peer="the holder")
            tops.append(float(read / KEY.public.n))
        assert 0 <= min(tops) < 0.2
        assert 0.8 < max(tops) < 1


def test_ciphertexts_of_another_length_are_refused() -> None:
    silo = LinearSilo(KEY.public, POINT)
    with pytest.raises(MessageError, match="the holder sent 2 x 255 bytes where 2 numbers of 256 bytes are due"):
        silo.mask(np.zeros((2, 255), np.uint8), np.ones((2, 1), np.int64), outputs=1, peer="the holder")


def test_the_holder_reads_one_gradient_of_a_batch_for_each_who_asked() -> None:
    holder, silo = LabelHolder(KEY, POINT), LinearSilo(KEY.public, POINT)
    x = np.ones((3, 2), np.int64)
    sent = holder.encrypt(np.ones((3, 1), np.int64), {"silo 'a'": 2})
    back, _ = silo.mask(sent, x, outputs=1, peer="the holder")
    holder.decrypt(back, peer="silo 'a'")
    for peer in ("silo 'a'", "silo 'b'"):
        with pytest.raises(MessageError, match=f"{peer} sent ciphertexts to be read, and none are due of this batch"):
            holder.decrypt(back, peer=peer)
    holder.encrypt(np.ones((3, 1), np.int64), {"silo 'a'": 2})
    with pytest.raises(MessageError, match="silo 'a' sent 2 x 256 bytes where 1 numbers of 256 bytes are due"):
        holder.decrypt(np.concatenate([back, back]), peer="silo 'a'")


def test_the_holder_caps_what_it_reads_of_a_batch_over_a_run() -> None:
    """Other rows in every round are other sums: a silo that cheats gets as many as are read for it, and no more."""
    holder, silo = LabelHolder(KEY, POINT, reads=Reads(2)), LinearSilo(KEY.public, POINT)

    def ask(peer: str, batch: bytes, rows: int) -> None:
        sent = holder.encrypt(np.ones((3, 1), np.int64), {peer: 2}, batch)
        back, _ = silo.mask(sent, np.full((3, 2), rows, np.int64), outputs=1, peer="the holder")
        holder.decrypt(back, peer=peer)

    for peer, batch in (("silo 'a'", b"one"), ("silo 'a'", b"two"), ("silo 'b'", b"one")):
        ask(peer, batch, 1)
        ask(peer, batch, 2)
    with pytest.raises(MessageError, match=r"silo 'a' sent .*, and had 2 gradients of this batch, which is all that"):
        ask("silo 'a'", b"one", 3)
    assert holder.reads.made == {("silo 'a'", b"one"): 2, ("silo 'a'", b"two"): 2, ("silo 'b'", b"one"): 2}
