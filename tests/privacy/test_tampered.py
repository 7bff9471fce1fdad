"""Messages that were changed on their way, against an own decryption: what cannot be right is a typed error."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from math import gcd, lcm
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosshatch.errors import MessageError
from crosshatch.privacy.encrypted_matrix import EncryptedMatrix, Masked, to_bytes
from crosshatch.privacy.fixed_point import FixedPoint, exact_products
from crosshatch.privacy.masked_gradients import LabelHolder, LinearSilo, gradient_slots
from tests.privacy.keys import nobody, seeded, short_key

KEY = short_key()
N, SQUARE, P, Q = int(KEY.public.n), int(KEY.public.square), int(KEY.p), int(KEY.q)
POINT = FixedPoint(fraction_bits=8, whole_bits=4)
ROWS, COLUMNS = 4, 20
SLOTS = gradient_slots(POINT, ROWS, 512)
WIDTH, PLAIN_WIDTH = KEY.public.ciphertext_bytes, KEY.public.plaintext_bytes
SILO = LinearSilo(KEY.public, POINT)
X = np.random.default_rng(1).integers(-POINT.bound, POINT.bound, (ROWS, COLUMNS), endpoint=True)
D = np.random.default_rng(2).integers(-POINT.bound, POINT.bound, (ROWS, 1), endpoint=True)
Sent = np.ndarray[Any, np.dtype[np.uint8]]


def holder() -> LabelHolder:
    found = LabelHolder(KEY, POINT)
    found.encrypt(D, {"silo 'a'": COLUMNS})
    return found


@cache
def honest(seed: int) -> tuple[Sent, Sent, Masked]:
    """Derivatives on their way, the masked gradient, and what takes its masks away."""
    derivatives = EncryptedMatrix.of(KEY, D, POINT.bound, draw=seeded(seed)).to_bytes()
    back, masked = SILO.mask(derivatives, X, outputs=1, peer="the holder")
    return derivatives, back, masked


def decrypted(ciphertext: int) -> int:
    """Paillier's own formula, modulo n."""
    exponent = lcm(P - 1, Q - 1)
    return (pow(ciphertext, exponent, SQUARE) - 1) // N * pow(exponent, -1, N) % N


def in_slots(plaintexts: list[int], masks: tuple[Any, ...]) -> list[int] | None:
    """The numbers slot by slot, from the lowest; None where something is out of range."""
    found: list[int] = []
    for plain, mask in zip(plaintexts, masks, strict=True):
        rest = (plain - int(mask)) % N
        rest = rest - N if rest > N // 2 else rest
        for _ in range(min(SLOTS.count, COLUMNS - len(found))):
            here = (rest + SLOTS.bound) % 2**SLOTS.bits - SLOTS.bound
            if here > SLOTS.bound:
                return None
            found.append(here)
            rest = (rest - here) >> SLOTS.bits
        if rest:
            return None
    return found


def well_formed(sent: Sent, count: int) -> bool:
    if sent.shape != (count, WIDTH):
        return False
    return all(0 < value < SQUARE and gcd(value, N) == 1 for value in whole(sent))


def whole(sent: Sent) -> list[int]:
    return [int.from_bytes(bytes(row), "big") for row in sent]


def put(value: Callable[[Random, int], int]) -> Callable[[Sent, Random], Sent]:
    """Another number in the place of one."""

    def change(sent: Sent, random: Random) -> Sent:
        changed, place = sent.copy(), random.randrange(len(sent))
        changed[place] = to_bytes([value(random, whole(sent)[place])], sent.shape[1])[0]
        return changed

    return change


def flip(sent: Sent, random: Random) -> Sent:
    changed = sent.copy()
    changed[random.randrange(len(sent)), random.randrange(sent.shape[1])] ^= 1 << random.randrange(8)
    return changed


def swap(sent: Sent, random: Random) -> Sent:
    a, b = random.sample(range(len(sent)), 2)
    changed = sent.copy()
    changed[[a, b]] = changed[[b, a]]
    return changed


CHANGES: dict[str, Callable[[Sent, Random], Sent]] = {
    "as it was": lambda sent, _: sent,
    "a bit": flip,
    "swapped": swap,
    "zero": put(lambda *_: 0),
    "a multiple of p": put(lambda random, _: P * random.randrange(1, Q) % 256**PLAIN_WIDTH),
    "a multiple of n": put(lambda *_: N),
    "2^400": put(lambda *_: 2**400),
    "anything": put(lambda random, _: random.randrange(256**PLAIN_WIDTH)),
    "all ones": lambda sent, _: np.full_like(sent, 255),
    "one too few": lambda sent, _: sent[1:],
    "none": lambda sent, _: sent[:0],
    "one twice": lambda sent, _: np.concatenate([sent, sent[:1]]),
    "cut off": lambda sent, random: sent[:, : random.randrange(sent.shape[1])],
    "one long row": lambda sent, _: sent.ravel(),
    "another type": lambda sent, _: sent.astype(np.int64),
}
CIPHERTEXTS = {
    "square or more": put(lambda random, _: SQUARE + random.randrange(256**WIDTH - SQUARE)),
    "a multiple of q squared": put(lambda random, _: Q * Q * random.randrange(1, P * P)),
    "inverted": put(lambda _, value: pow(value, -1, SQUARE)),
    "a little more": put(lambda random, value: value * (1 + random.randrange(1, 2**12) * N) % SQUARE),
    "a slot more": put(lambda random, value: value * (1 + (random.randrange(8) << SLOTS.bits) * N) % SQUARE),
    "a ciphertext of anything": put(lambda random, _: (1 + random.randrange(N) * N) * pow(3, N, SQUARE) % SQUARE),
}
SEEDS = st.integers(0, 2**32)


def sample(examples: int) -> Any:
    few = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    changes = st.sampled_from([*CHANGES.items(), *CIPHERTEXTS.items()])
    return lambda test: few(given(change=changes, seed=SEEDS)(test))


def masked_gradient(change: tuple[str, Callable[[Sent, Random], Sent]], seed: int) -> None:
    """On its way to the holder: it refuses what is malformed, the silo what is out of range."""
    _, back, masked = honest(seed % 5)
    sent = change[1](back, Random(seed))
    reader = holder()
    if sent.dtype != np.uint8 or not well_formed(sent, len(back)):
        with pytest.raises(MessageError, match="silo 'a' sent"):
            reader.decrypt(sent, peer="silo 'a'", count=nobody)
        return
    read = reader.decrypt(sent, peer="silo 'a'", count=nobody)
    wanted = in_slots([decrypted(value) for value in whole(sent)], masked.masks)
    if wanted is None:
        with pytest.raises(MessageError, match="the holder sent back a number"):
            SILO.unmask(read, masked, peer="the holder")
    else:
        assert SILO.unmask(read, masked, peer="the holder") == wanted
        assert change[0] not in ("swapped", "2^400", "anything", "a ciphertext of anything")


def read_gradient(change: tuple[str, Callable[[Sent, Random], Sent]], seed: int) -> None:
    """On its way back to the silo."""
    _, back, masked = honest(seed % 5)
    read = holder().decrypt(back, peer="silo 'a'", count=nobody)
    sent = change[1](read, Random(seed)) if change[0] in CHANGES else flip(read, Random(seed))
    fits = sent.dtype == np.uint8 and sent.shape == read.shape and all(value < N for value in whole(sent))
    wanted = in_slots(whole(sent), masked.masks) if fits else None
    if wanted is None:
        with pytest.raises(MessageError, match="the holder sent"):
            SILO.unmask(sent, masked, peer="the holder")
    else:
        assert SILO.unmask(sent, masked, peer="the holder") == wanted


def derivatives(change: tuple[str, Callable[[Sent, Random], Sent]], seed: int) -> None:
    """On their way to the silo: it computes with whatever is a ciphertext, and notices what is out of range then."""
    told, _, _ = honest(seed % 5)
    sent = change[1](told, Random(seed))
    if sent.dtype != np.uint8 or not well_formed(sent, ROWS):
        with pytest.raises(MessageError, match="the holder sent"):
            SILO.mask(sent, X, outputs=1, peer="the holder")
        return
    back, masked = SILO.mask(sent, X, outputs=1, peer="the holder")
    read = holder().decrypt(back, peer="silo 'a'", count=nobody)
    wanted = in_slots([decrypted(value) for value in whole(back)], masked.masks)
    if wanted is None:
        with pytest.raises(MessageError, match="the holder sent back a number"):
            SILO.unmask(read, masked, peer="the holder")
    else:
        assert SILO.unmask(read, masked, peer="the holder") == wanted


test_masked_gradients = sample(200)(masked_gradient)
test_read_gradients = sample(200)(read_gradient)
test_derivatives = sample(100)(derivatives)
test_many_masked_gradients = pytest.mark.slow(sample(4000)(masked_gradient))
test_many_read_gradients = pytest.mark.slow(sample(4000)(read_gradient))
test_many_derivatives = pytest.mark.slow(sample(2000)(derivatives))


def test_what_was_not_changed_is_the_gradient() -> None:
    _, back, masked = honest(0)
    read = holder().decrypt(back, peer="silo 'a'", count=nobody)
    assert SILO.unmask(read, masked, peer="the holder") == exact_products(D, X)


def test_keys_and_masks_are_neither_printed_nor_stored() -> None:
    _, _, masked = honest(0)
    for secret in (KEY, *KEY._halves, *KEY._powers, masked, LabelHolder(KEY, POINT)):
        shown = repr(secret)
        for number in (P, Q, P * P, Q * Q, *map(int, masked.masks)):
            assert str(number) not in shown
            assert f"{number:x}" not in shown
        for store in (pickle.dumps, copy.copy, copy.deepcopy):
            if store is copy.copy and isinstance(secret, LabelHolder):
                continue  # it has the key, and a copy has the same one
            with pytest.raises(TypeError, match="is secret: it can be neither pickled nor copied"):
                store(secret)
