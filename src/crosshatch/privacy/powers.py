"""Products of powers modulo a number, with fewer multiplications than one power after the other.

Both ways are textbook ones: a table of a fixed base's powers, and Straus' simultaneous exponentiation, in which all
bases share the squarings, with signed digits of which few are not zero (wNAF).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from gmpy2 import invert, mpz

from crosshatch.privacy.fixed_point import Whole
from crosshatch.privacy.secret import Secret
from crosshatch.privacy.threads import run_all

WINDOW = 5  # digits are odd, below 16 in magnitude; any five in a row have at most one that is not zero
_TABLE = 1 << (WINDOW - 2)  # odd powers kept of every base
_FEW_ROWS = 8  # a thread that gets fewer spends its time on squarings


@dataclass(frozen=True, repr=False)
class FixedBase(Secret):
    """All powers of one base with exponents of so many bytes, each a product of one number per byte.

    Who has the key computes modulo the squares of its primes, so that a modulus may tell them.
    """

    modulus: mpz
    table: tuple[tuple[mpz, ...], ...]  # [place of a byte][its value]

    @classmethod
    def of(cls, base: mpz, modulus: mpz, exponent_bits: int) -> FixedBase:
        """Work out the table, 256 numbers per byte of an exponent."""
        rows = []
        for _ in range(-(-exponent_bits // 8)):
            row = [mpz(1)]
            for _ in range(256):
                row.append(row[-1] * base % modulus)
            base = row.pop()
            rows.append(tuple(row))
        return cls(modulus, tuple(rows))

    def power(self, exponent: int) -> mpz:
        """The base to the power of an exponent from 0 on."""
        found, modulus = mpz(1), self.modulus
        for row, byte in zip(self.table, exponent.to_bytes(len(self.table), "little"), strict=True):
            if byte:
                found = found * row[byte] % modulus
        return found


def signed_digits(numbers: Whole) -> npt.NDArray[np.int8]:
    """Digits (places, ...) to the base of 2 of whole numbers below 2^61: zero, or odd and below 16 in magnitude.

    >>> digits = signed_digits(np.array([-7, 100]))
    >>> (digits * 2 ** np.arange(len(digits))[:, None]).sum(0)
    array([ -7, 100])
    """
    half, rest = 1 << (WINDOW - 1), numbers.astype(np.int64)
    places = []
    while rest.any():
        digit = np.where(rest & 1, ((rest + half) & (2 * half - 1)) - half, 0)
        places.append(digit.astype(np.int8))
        rest = (rest - digit) >> 1
    return np.array(places, dtype=np.int8).reshape(len(places), *numbers.shape)


def products_of_powers(bases: Sequence[mpz], exponents: Whole, modulus: mpz, *, threads: int) -> list[mpz]:
    """For each column of exponents (bases, columns) the product of all bases to their powers.

    Threads take rows, so that one column keeps all of them busy.
    """
    edges = _edges(len(bases), threads)
    digits = signed_digits(exponents)
    pieces = run_all(
        [partial(_products, bases[a:b], digits[:, a:b], modulus) for a, b in pairwise(edges)],
        threads=threads,
    )
    found, *others = pieces
    for other in others:
        found = [(p * plus % modulus, n * minus % modulus) for (p, n), (plus, minus) in zip(found, other, strict=True)]
    return [plus * invert(minus, modulus) % modulus for plus, minus in found]


def multiplications(exponents: Whole, *, threads: int) -> int:
    """How many of them `products_of_powers` takes, those of a few inversions left out."""
    digits = signed_digits(exponents)
    pieces = [digits[:, a:b] for a, b in pairwise(_edges(len(exponents), threads))]
    return sum(_multiplications(piece[:, np.newaxis]) for piece in pieces)


def multiplications_each(exponents: Whole) -> int:
    """The same for many matrices of exponents (matrices, bases, columns), on one thread each."""
    return _multiplications(signed_digits(exponents))


def _multiplications(digits: npt.NDArray[np.int8]) -> int:
    """Of digits (places, matrices, bases, columns); squarings begin below the first digit of their sign."""
    places, matrices, bases, columns = digits.shape
    place = np.arange(places)[:, np.newaxis, np.newaxis]
    signs = ((digits > 0).any(axis=2), (digits < 0).any(axis=2))
    squarings = sum(int((place * found).max(axis=0, initial=0).sum()) for found in signs)
    return int(matrices * (bases * _TABLE + 2 * columns) + np.count_nonzero(digits) + squarings)


def _edges(rows: int, threads: int) -> list[int]:
    """Where the rows of each thread begin, and the end."""
    pieces = max(1, min(threads, rows // _FEW_ROWS))
    return [rows * i // pieces for i in range(pieces + 1)]


def _products(bases: Sequence[mpz], digits: npt.NDArray[np.int8], modulus: mpz) -> list[tuple[mpz, mpz]]:
    """For each column the product over positive digits and the one over negative digits."""
    tables = [_odd_powers(base, modulus) for base in bases]
    found = []
    for column in np.moveaxis(digits[::-1], 2, 0):
        plus = minus = mpz(1)
        places, rows = column.nonzero()
        here = 0
        for place, row, digit in zip(places.tolist(), rows.tolist(), column[places, rows].tolist(), strict=True):
            plus, minus, here = _square(plus, place - here, modulus), _square(minus, place - here, modulus), place
            if digit > 0:
                plus = plus * tables[row][digit >> 1] % modulus
            else:
                minus = minus * tables[row][-digit >> 1] % modulus
        left = len(column) - 1 - here
        found.append((_square(plus, left, modulus), _square(minus, left, modulus)))
    return found


def _square(number: mpz, times: int, modulus: mpz) -> mpz:
    """So many times, unless nothing was multiplied yet."""
    if times and number != 1:
        for _ in range(times):
            number = number * number % modulus
    return number


def _odd_powers(base: mpz, modulus: mpz) -> list[mpz]:
    square = base * base % modulus
    powers = [base]
    for _ in range(_TABLE - 1):
        powers.append(powers[-1] * square % modulus)
    return powers
