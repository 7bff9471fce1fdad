"""Matrices under encryption against numpy, packing and masks, and numbers that would not fit."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import ConfigError, MessageError
from crosshatch.privacy.encrypted_matrix import EncryptedMatrix, Masked, to_bytes
from crosshatch.privacy.fixed_point import Whole
from crosshatch.privacy.masked_gradients import read_for
from crosshatch.privacy.packing import Slots
from tests.privacy.keys import seeded, short_key

KEY = short_key()
BOUND = 2**30


def matrix(rows: int, columns: int, seed: int = 0) -> Whole:
    found = np.random.default_rng(seed).integers(-BOUND, BOUND, (rows, columns), endpoint=True)
    found[0, 0], found[-1, -1] = BOUND, -BOUND
    return found


def read(encrypted: EncryptedMatrix) -> list[list[int]]:
    columns = encrypted.shape[1]
    flat = encrypted.decrypt(KEY, threads=2)
    return [flat[i : i + columns] for i in range(0, len(flat), columns)]


def plain(numbers: object) -> list[list[int]]:
    return np.asarray(numbers, dtype=object).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("threads", [1, 2])
def test_arithmetic(threads: int) -> None:
    a, b, c = matrix(20, 3, 1), matrix(20, 3, 2), matrix(20, 4, 3)
    x, y = EncryptedMatrix.of(KEY, a, BOUND, threads=threads), EncryptedMatrix.of(KEY.public, b, BOUND)
    long_a, long_b, long_c = (one.astype(object) for one in (a, b, c))
    assert read(x) == plain(a)
    assert read(x + y) == plain(long_a + long_b)
    assert read(x.transposed_product(c, BOUND, threads=threads)) == plain(long_a.T @ long_c)
    assert read(x.T) == plain(long_a.T)


def test_bounds_hold() -> None:
    a, b = matrix(20, 3, 1), matrix(20, 3, 2)
    x, y = EncryptedMatrix.of(KEY, a, BOUND), EncryptedMatrix.of(KEY, b, BOUND)
    for found in (x + y, x.transposed_product(b, BOUND)):
        assert max(map(abs, found.decrypt(KEY))) <= found.bound


def test_what_could_wrap_is_refused_whatever_the_numbers() -> None:
    zero = EncryptedMatrix.of(KEY, np.zeros((1, 1), np.int64), KEY.public.most)
    with pytest.raises(ConfigError, match=r"could reach 512 bits, a key of 512 holds 510: raise privacy.key_bits"):
        zero + zero
    with pytest.raises(ConfigError, match="could reach"):
        zero.transposed_product(np.zeros((1, 1), np.int64), 2)


def test_bytes() -> None:
    x = EncryptedMatrix.of(KEY, matrix(3, 2), BOUND)
    sent = x.to_bytes()
    assert sent.shape == (6, 128)
    assert EncryptedMatrix.from_bytes(KEY.public, (3, 2), BOUND, sent, peer="silo 'a'") == x
    with pytest.raises(MessageError, match="silo 'a' sent 6 x 128 bytes where 9 numbers of 128 bytes are due"):
        EncryptedMatrix.from_bytes(KEY.public, (3, 3), BOUND, sent, peer="silo 'a'")
    with pytest.raises(MessageError, match=r"silo 'a' sent a number in the place of ciphertext 0 .* under another key"):
        EncryptedMatrix.from_bytes(KEY.public, (3, 2), BOUND, np.full_like(sent, 255), peer="silo 'a'")


# Packing and masks


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=12), st.integers(0, 2**32))
def test_masked_numbers_come_back(numbers: list[int], seed: int) -> None:
    bound = 1000
    encrypted = EncryptedMatrix.of(KEY, np.array([numbers]), bound)
    masked = Masked.of(encrypted, draw=seeded(seed))
    assert len(masked.sent) == -(-len(numbers) // masked.slots.count)
    assert masked.unmask(read_for(KEY, masked.sent, threads=1), peer="") == numbers


@pytest.mark.parametrize("ones", [False, True])
def test_extremes_do_not_reach_the_next_slot(ones: bool) -> None:
    """The smallest and the largest masks there are, on the smallest and the largest numbers."""
    bound = 2**90 - 1
    slots = Slots(bound, 512)
    numbers = [bound, -bound, 0, -bound, bound, bound, -bound]
    values = tuple(KEY.encrypt(numbers))
    masked = Masked.of(EncryptedMatrix(KEY.public, (1, 7), values, bound), draw=partial(_extreme, ones))
    assert masked.slots == slots
    assert masked.unmask(read_for(KEY, masked.sent, threads=1), peer="") == numbers


def _extreme(ones: bool, bits: int) -> int:
    """Masks and noise of n - 1, or of 1: noise has to be a number that can be divided by."""
    assert bits == 512
    return int(KEY.public.n) - 1 if ones else 1


def test_masks_are_uniform_modulo_the_key() -> None:
    encrypted = EncryptedMatrix.of(KEY, np.array([[3, -4]]), 10)
    masks = [Masked.of(encrypted, draw=seeded(seed)).masks for seed in range(400)]
    assert {len(mine) for mine in masks} == {1}  # one for each ciphertext
    shares = np.array([float(mine[0] / KEY.public.n) for mine in masks])
    assert np.abs(np.sort(shares) - (np.arange(400) + 0.5) / 400).max() < 1.63 / 20  # Kolmogorov and Smirnov, 1%


def test_masks_and_noise_are_new_each_time() -> None:
    encrypted = EncryptedMatrix.of(KEY, np.array([[1, 2]]), 10)
    first, second = Masked.of(encrypted), Masked.of(encrypted)
    assert first.masks != second.masks
    assert first.sent != second.sent
    same = Masked.of(encrypted, draw=seeded(1))
    assert Masked.of(encrypted, draw=seeded(1)) == same


def test_nothing_is_left_of_how_it_was_computed() -> None:
    """Who has the key and knows all noise it sent finds noise in what comes back that it did not send."""
    encrypted = EncryptedMatrix.of(KEY, np.array([[5]]), 10)
    masked = Masked.of(encrypted)
    without_mask = masked.sent[0] * (1 - masked.masks[0] * KEY.public.n) % KEY.public.square
    assert KEY.decrypt([without_mask]) == [5]
    assert without_mask != encrypted.values[0]


def test_changed_answers_are_noticed() -> None:
    encrypted = EncryptedMatrix.of(KEY, np.array([[5, 6]]), 10)
    masked = Masked.of(encrypted)
    (read_by_owner,) = KEY.decrypt(masked.sent)
    changed = to_bytes([(read_by_owner + 1000) % KEY.public.n], KEY.public.plaintext_bytes)
    with pytest.raises(MessageError, match="silo 'b' sent back a number that is larger than it can be"):
        masked.unmask(changed, peer="silo 'b'")


def test_numbers_too_long_for_a_key() -> None:
    with pytest.raises(ConfigError, match=r"do not fit under a key of 512: raise privacy.key_bits"):
        Slots(2**511, 512)
