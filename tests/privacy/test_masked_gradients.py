"""The messages of one masked gradient: what comes out, and what the label's holder gets to see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import MessageError
from crosshatch.privacy import masked_gradients
from crosshatch.privacy.encrypted_matrix import Bytes, read_numbers
from crosshatch.privacy.fixed_point import FixedPoint, exact_products
from crosshatch.privacy.masked_gradients import LabelHolder, LinearSilo, gradient, gradient_slots, read_for
from crosshatch.privacy.paillier import PrivateKey
from tests.privacy.keys import nobody, short_key

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
    found = silo.unmask(holder.decrypt(sent, peer="silo 'a'", count=nobody), masked, peer="the holder")
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
            (read,) = read_numbers(holder.decrypt(back, peer="silo 'a'", count=nobody), 1, 128, peer="the holder")
            tops.append(float(read / KEY.public.n))
        assert 0 <= min(tops) < 0.2
        assert 0.8 < max(tops) < 1


def test_ciphertexts_of_another_length_are_refused() -> None:
    silo = LinearSilo(KEY.public, POINT)
    with pytest.raises(MessageError, match="the holder sent 2 x 255 bytes where 2 numbers of 256 bytes are due"):
        silo.mask(np.zeros((2, 255), np.uint8), np.ones((2, 1), np.int64), outputs=1, peer="the holder")


@pytest.mark.parametrize("sent", [None, "text", b"bytes", [1, 2], np.zeros((1, 256)), np.zeros((1, 256), np.int8)])
def test_what_is_no_array_of_bytes_is_refused_and_the_party_named(sent: Any) -> None:
    holder, silo = LabelHolder(KEY, POINT), LinearSilo(KEY.public, POINT)
    back, masked = silo.mask(holder.encrypt(np.ones((1, 1), np.int64), {"silo 'a'": 1}), np.ones((1, 1), np.int64),
        outputs=1, peer="the holder")  # fmt: skip
    reads: dict[str, Callable[[], object]] = {
        "silo 'a'": lambda: holder.decrypt(sent, peer="silo 'a'", count=nobody),
        "the holder": lambda: silo.mask(sent, np.ones((1, 1), np.int64), outputs=1, peer="the holder"),
        "holder of labels": lambda: silo.unmask(sent, masked, peer="holder of labels"),
    }
    for peer, read in reads.items():
        with pytest.raises(MessageError, match=f"^{peer} sent .* where 1 numbers of (256|128) bytes are due"):
            read()
    holder.decrypt(back, peer="silo 'a'", count=nobody)  # what was refused did not use it up


def test_the_holder_reads_one_gradient_of_a_batch_for_each_who_asked() -> None:
    holder, silo = LabelHolder(KEY, POINT), LinearSilo(KEY.public, POINT)
    x = np.ones((3, 2), np.int64)
    sent = holder.encrypt(np.ones((3, 1), np.int64), {"silo 'a'": 2})
    back, _ = silo.mask(sent, x, outputs=1, peer="the holder")
    holder.decrypt(back, peer="silo 'a'", count=nobody)
    for peer in ("silo 'a'", "silo 'b'"):
        with pytest.raises(MessageError, match=f"{peer} sent ciphertexts to be read, and none are due of this batch"):
            holder.decrypt(back, peer=peer, count=nobody)
    holder.encrypt(np.ones((3, 1), np.int64), {"silo 'a'": 2})
    with pytest.raises(MessageError, match="silo 'a' sent 2 x 256 bytes where 1 numbers of 256 bytes are due"):
        holder.decrypt(np.concatenate([back, back]), peer="silo 'a'", count=nobody)


def test_the_holder_counts_before_it_decrypts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other rows in every round are other sums: what is not counted, or is too much, is not read."""
    holder, silo = LabelHolder(KEY, POINT), LinearSilo(KEY.public, POINT)
    order: list[str] = []

    def read(key: PrivateKey, values: Sequence[mpz], *, threads: int) -> Bytes:
        order.append("read")
        return read_for(key, values, threads=threads)

    def full() -> None:
        raise MessageError("no more")

    monkeypatch.setattr(masked_gradients, "read_for", read)
    sent = holder.encrypt(np.ones((3, 1), np.int64), {"silo 'a'": 2})
    back, _ = silo.mask(sent, np.ones((3, 2), np.int64), outputs=1, peer="the holder")
    with pytest.raises(MessageError, match="no more"):
        holder.decrypt(back, peer="silo 'a'", count=full)
    assert order == []
    holder.decrypt(back, peer="silo 'a'", count=lambda: order.append("counted"))
    assert order == ["counted", "read"]
