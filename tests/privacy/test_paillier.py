"""Paillier: numbers come back, sums and products hold under the encryption, and another implementation agrees."""

from __future__ import annotations

import secrets

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st
from phe import PaillierPrivateKey, PaillierPublicKey, paillier

from crosshatch.errors import ConfigError
from crosshatch.privacy.paillier import PrivateKey, PublicKey, generate_keys
from tests.privacy.keys import seeded, short_key

KEY = short_key()
MOST = KEY.public.most
numbers = st.one_of(st.integers(-MOST, MOST), st.integers(-3, 3), st.sampled_from([-MOST, MOST, 0]))


@given(numbers, st.booleans())
def test_numbers_come_back(number: int, by_owner: bool) -> None:
    (ciphertext,) = (KEY if by_owner else KEY.public).encrypt([number])
    assert KEY.decrypt([ciphertext]) == [number]


@given(st.integers(-MOST // 2, MOST // 2), st.integers(-MOST // 2, MOST // 2))
def test_sums(a: int, b: int) -> None:
    x, y = KEY.public.encrypt([a, b])
    assert KEY.decrypt([x * y % KEY.public.square]) == [a + b]
    assert KEY.decrypt([x * KEY.public.plain(b) % KEY.public.square]) == [a + b]


@given(st.integers(-(2**300), 2**300), st.integers(-(2**200), 2**200))
def test_products_with_clear_numbers(a: int, b: int) -> None:
    (x,) = KEY.public.encrypt([a])
    assert KEY.decrypt([gmpy2.powmod(x, b, KEY.public.square)]) == [a * b]


def test_new_noise_changes_the_ciphertext_alone() -> None:
    (x,) = KEY.public.encrypt([-5])
    for noise in (KEY.public.uniform_noise(secrets.randbits), KEY.short_noise(secrets.randbits)):
        assert x * noise % KEY.public.square != x
        assert KEY.decrypt([x * noise % KEY.public.square]) == [-5]
    assert KEY.public.encrypt([1, 1])[0] != KEY.public.encrypt([1])[0]


def test_owner_and_others_draw_the_same_noise() -> None:
    assert KEY.encrypt([7, -7], draw=seeded(1)) == KEY.public.encrypt([7, -7], draw=seeded(1))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_threads_keep_the_order(threads: int, count: int) -> None:
    expected = list(range(-2, count - 2))
    assert KEY.decrypt(KEY.encrypt(expected, threads=threads), threads=threads) == expected


@pytest.mark.parametrize("number", [MOST + 1, -MOST - 1, 2**4000])
def test_what_would_wrap_is_refused(number: int) -> None:
    with pytest.raises(ConfigError, match="it would wrap"):
        KEY.public.encrypt([number])


@pytest.mark.parametrize("bits", [512, 1024])
def test_keys(bits: int) -> None:
    key = short_key(bits)
    assert (key.public.n, key.public.bits) == (key.p * key.q, bits)
    assert key.p.bit_length() == key.q.bit_length() == bits // 2
    assert key.p % 4 == key.q % 4 == 3
    assert gmpy2.gcd(key.p - 1, key.q - 1) == 2
    assert all(gmpy2.is_strong_prp(prime, 3) and gmpy2.is_prime(prime) for prime in (key.p, key.q))
    # h is an n-th power, so that its powers are encryptions of zero, and not a square modulo either prime
    assert KEY.decrypt([KEY.public.h]) == [0]
    assert gmpy2.jacobi(key.public.h, key.p) == gmpy2.jacobi(key.public.h, key.q) == -1
    assert (key.public.plaintext_bytes, key.public.ciphertext_bytes) == (bits // 8, bits // 4)


def test_usual_keys_are_long() -> None:
    assert generate_keys().public.bits == 3072


@pytest.mark.parametrize("bits", [512, 1024, 2047, 2040, 2050, 8192, 0, -1, 3072.0, True])
def test_other_lengths_are_refused(bits: int) -> None:
    with pytest.raises(ConfigError, match=r"privacy.key_bits = .*: must be a"):
        generate_keys(bits)


def test_new_keys_differ() -> None:
    assert generate_keys(256, weak=True).public.n != generate_keys(256, weak=True).public.n


# Another implementation


def theirs() -> tuple[PaillierPublicKey, PaillierPrivateKey]:
    public = PaillierPublicKey(int(KEY.public.n))
    return public, PaillierPrivateKey(public, int(KEY.p), int(KEY.q))


def modulo_n(number: int) -> int:
    return number % int(KEY.public.n)


@given(numbers, numbers)
def test_phe_reads_ours(a: int, b: int) -> None:
    _, private = theirs()
    x, y = KEY.encrypt([a, b])
    assert private.raw_decrypt(int(x)) == modulo_n(a)
    assert private.raw_decrypt(int(x * y % KEY.public.square)) == modulo_n(a + b)
    assert private.raw_decrypt(int(gmpy2.powmod(x, -3, KEY.public.square))) == modulo_n(-3 * a)


@given(numbers)
def test_we_read_phe(number: int) -> None:
    public, _ = theirs()
    assert KEY.decrypt([mpz(public.raw_encrypt(modulo_n(number)))]) == [number]


@given(st.integers(-(2**50), 2**50), st.integers(-(2**50), 2**50), st.integers(-(2**30), 2**30))
def test_we_read_what_phe_computed(a: int, b: int, c: int) -> None:
    public, _ = theirs()
    ours = paillier.EncryptedNumber(public, int(KEY.public.encrypt([a])[0]))
    total = (ours + public.encrypt(b)) * c
    assert total.exponent == 0
    assert KEY.decrypt([mpz(total.ciphertext())]) == [(a + b) * c]


def test_keys_of_phe() -> None:
    public, private = paillier.generate_paillier_keypair(n_length=512)
    n = mpz(public.n)
    ours = PrivateKey(mpz(private.p), mpz(private.q), PublicKey(n, gmpy2.powmod(-(12345**2) % n, n, n * n)))
    assert ours.decrypt([mpz(public.raw_encrypt(99))]) == [99]
    assert private.raw_decrypt(int(ours.encrypt([99])[0])) == 99
