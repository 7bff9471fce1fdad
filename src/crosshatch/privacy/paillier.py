"""Paillier's cryptosystem: whole numbers that anybody can encrypt and add up, and one party can read.

Paillier, Eurocrypt 1999, with g = n + 1. A ciphertext of m is (1 + m n) u mod n^2, where u is a random n-th power.

Fresh ciphertexts take u = h^s for a public n-th power h and a short random s, as Damgard, Jurik and Nielsen propose
(Int. J. Inf. Security 9, 2010). That they hide m rests on the decisional composite residuosity assumption and on one
more: that powers of h with exponents twice as long as the security level look like any others.

Whoever has the key also knows more about u than others. What goes back to that party is therefore made anew with a
uniform n-th power (`uniform_noise`), which rests on nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from gmpy2 import gcd, invert, is_prime, mpz, powmod

from crosshatch.errors import ConfigError, MessageError
from crosshatch.privacy.key_bits import KEY_BITS, check_key_bits
from crosshatch.privacy.powers import FixedBase
from crosshatch.privacy.secret import Secret
from crosshatch.privacy.threads import run_all

Draw = Callable[[int], int]
"""So many random bits, as a whole number: `secrets.randbits`, but in tests."""
_TESTS = 40  # of a prime: a composite passes with a probability below 4^-40


@dataclass(frozen=True)
class PublicKey:
    """What everybody has: n, and the n-th power whose powers hide numbers."""

    n: mpz
    h: mpz

    @cached_property
    def bits(self) -> int:
        return int(self.n.bit_length())

    @cached_property
    def square(self) -> mpz:
        """Ciphertexts are numbers modulo n^2."""
        return self.n * self.n

    @cached_property
    def ciphertext_bytes(self) -> int:
        """A ciphertext on its way."""
        return 2 * self.plaintext_bytes

    @cached_property
    def plaintext_bytes(self) -> int:
        """A decrypted number on its way."""
        return self.bits // 8

    @cached_property
    def most(self) -> int:
        """The largest magnitude of a number, a little below n / 2: half of the plaintexts stand for negative ones."""
        return 1 << (self.bits - 2)

    @cached_property
    def exponent_bits(self) -> int:
        """Of the short exponents: twice the level of security."""
        return 256 if self.bits <= KEY_BITS else 384

    @cached_property
    def _powers(self) -> FixedBase:
        return FixedBase.of(self.h, self.square, self.exponent_bits)

    def short_noise(self, draw: Draw) -> mpz:
        """A random power of h."""
        return self._powers.power(draw(self.exponent_bits))

    def uniform(self, draw: Draw) -> mpz:
        """A uniform number below n."""
        while True:
            found = mpz(draw(self.bits))
            if found < self.n:
                return found

    def uniform_noise(self, draw: Draw) -> mpz:
        """A uniform n-th power, for what goes back to the key's owner."""
        while True:
            found = self.uniform(draw)
            if gcd(found, self.n) == 1:
                return powmod(found, self.n, self.square)

    def require(self, values: Sequence[mpz], peer: str) -> None:
        """Refuse numbers from a party that no ciphertext under this key can be."""
        for place, value in enumerate(values):
            if not 0 < value < self.square:
                raise MessageError(
                    f"{peer} sent a number in the place of ciphertext {place} that is not between 0 and the square of "
                    f"the key's {self.bits} bits: changed on its way, or under another key"
                )
            if gcd(value, self.n) != 1:
                raise MessageError(
                    f"{peer} sent a number in the place of ciphertext {place} that has a factor in common with the "
                    "key: it is no ciphertext, changed on its way or made up"
                )

    def signed(self, number: mpz) -> mpz:
        """A number modulo n; those above n / 2 stand for negative ones."""
        number %= self.n
        return number - self.n if 2 * number > self.n else number

    def plain(self, number: int) -> mpz:
        """A number under the key without any noise: enough to add it to a ciphertext, but not hidden."""
        if not -self.most <= number <= self.most:
            raise ConfigError(
                f"a number of {abs(number).bit_length()} bits under a key of {self.bits}: it would wrap, at most "
                f"{self.bits - 2} bits are numbers: raise privacy.key_bits, or lower the bits of fixed point"
            )
        return 1 + (number % self.n) * self.n

    def encrypt(self, numbers: Sequence[int], *, threads: int = 1, draw: Draw = secrets.randbits) -> list[mpz]:
        """A ciphertext of each number."""
        _ = self._powers  # once, before threads ask for them
        return _encrypt(self, self.short_noise, numbers, threads, draw)


@dataclass(frozen=True, repr=False)
class PrivateKey(Secret):
    """What the owner has: the two primes. It computes modulo each of them, which is less work than modulo n."""

    p: mpz
    q: mpz
    public: PublicKey

    @cached_property
    def _halves(self) -> tuple[_Half, _Half]:
        return _Half.of(self.p, self.q), _Half.of(self.q, self.p)

    @cached_property
    def _powers(self) -> tuple[FixedBase, FixedBase]:
        p, q = self._halves
        bits = self.public.exponent_bits
        h = self.public.h
        return FixedBase.of(h % p.square, p.square, bits), FixedBase.of(h % q.square, q.square, bits)

    @cached_property
    def _inverses(self) -> tuple[mpz, mpz]:
        """Of q modulo p, and of its square modulo that of p."""
        return invert(self.q, self.p), invert(self._halves[1].square, self._halves[0].square)

    def short_noise(self, draw: Draw) -> mpz:
        """A random power of h, as `PublicKey` has it."""
        exponent, (p, q) = draw(self.public.exponent_bits), self._powers
        at_p, at_q = p.power(exponent), q.power(exponent)
        return at_q + q.modulus * ((at_p - at_q) * self._inverses[1] % p.modulus)

    def encrypt(self, numbers: Sequence[int], *, threads: int = 1, draw: Draw = secrets.randbits) -> list[mpz]:
        """A ciphertext of each number, in about half the time that others take."""
        _ = self._powers, self._inverses
        return _encrypt(self.public, self.short_noise, numbers, threads, draw)

    def decrypt(self, ciphertexts: Sequence[mpz], *, threads: int = 1) -> list[int]:
        """The numbers; those above n / 2 are negative."""
        work = [partial(half.decrypt, ciphertext) for ciphertext in ciphertexts for half in self._halves]
        halves = run_all(work, threads=threads)
        return [self._join(at_p, at_q) for at_p, at_q in zip(halves[::2], halves[1::2], strict=True)]

    def _join(self, at_p: mpz, at_q: mpz) -> int:
        return int(self.public.signed(at_q + self.q * ((at_p - at_q) * self._inverses[0] % self.p)))


@dataclass(frozen=True, repr=False)
class _Half(Secret):
    """Decryption modulo one of the primes."""

    prime: mpz
    square: mpz
    factor: mpz

    @classmethod
    def of(cls, prime: mpz, other: mpz) -> _Half:
        # g = 1 + n, so g^(p-1) = 1 + (p - 1) n = 1 - n modulo p^2, and L of it is -q modulo p.
        return cls(prime, prime * prime, invert(-other % prime, prime))

    def decrypt(self, ciphertext: mpz) -> mpz:
        """A plaintext modulo the prime."""
        power = powmod(ciphertext, self.prime - 1, self.square)
        return (power - 1) // self.prime * self.factor % self.prime


def generate_keys(bits: int = KEY_BITS, *, draw: Draw = secrets.randbits, weak: bool = False) -> PrivateKey:
    """A new pair of keys with n of so many bits. `weak`: also below 2048 bits, which protects nothing: for tests.

    >>> key = generate_keys(256, weak=True)
    >>> total = 1
    >>> for ciphertext in key.public.encrypt([20, -62]):
    ...     total = total * ciphertext % key.public.square
    >>> key.decrypt([total])
    [-42]
    """
    check_key_bits(bits, weak=weak)
    p = _prime(bits // 2, draw)
    q = _prime(bits // 2, draw)
    while q == p or gcd(p - 1, q - 1) != 2:
        q = _prime(bits // 2, draw)
    n = p * q
    x = mpz(draw(bits - 1))
    while gcd(x, n) != 1:
        x = mpz(draw(bits - 1))
    # Both primes are 3 modulo 4, so -x^2 generates what squares and their negatives do: Jacobi symbol 1, no square.
    h = powmod(-x * x % n, n, n * n)
    return PrivateKey(p, q, PublicKey(n, h))


def _encrypt(
    key: PublicKey, noise: Callable[[Draw], mpz], numbers: Sequence[int], threads: int, draw: Draw
) -> list[mpz]:
    def some(mine: Sequence[int]) -> list[mpz]:
        return [key.plain(number) * noise(draw) % key.square for number in mine]

    pieces = [numbers[i::threads] for i in range(threads)]
    found = run_all([partial(some, piece) for piece in pieces if piece], threads=threads)
    together: list[mpz] = [mpz(0)] * len(numbers)
    for i, piece in enumerate(found):
        together[i::threads] = piece
    return together


def _prime(bits: int, draw: Draw) -> mpz:
    """A random prime of just so many bits, 3 modulo 4; two of them have a product of twice as many."""
    while True:
        found = mpz(draw(bits) | (0b11 << (bits - 2)) | 0b11)
        if is_prime(found, _TESTS):
            return found
