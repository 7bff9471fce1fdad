"""Several numbers in one plaintext, each in a slot wide enough for it and for the mask that hides it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gmpy2 import mpz, powmod

from crosshatch.errors import ConfigError
from crosshatch.privacy.paillier import Draw, PublicKey

HIDING_BITS = 40
"""How much longer a mask is than what it hides: the sum of both tells less than 2^-40 about it."""


@dataclass(frozen=True)
class Slots:
    """Slots in the plaintexts of a key, for numbers of a magnitude up to `bound` and a mask each.

    A mask is at least `bound`, so that what is in a slot is never negative, and their sum never reaches the next slot.

    >>> slots = Slots(bound=1000, key_bits=256)
    >>> slots.bits, slots.count
    (52, 4)
    >>> slots.split(slots.join([3, 1, 4, 1, 5]), 5)
    [3, 1, 4, 1, 5]
    """

    bound: int
    key_bits: int

    def __post_init__(self) -> None:
        """Refuse numbers that are too long for the key."""
        if self.count < 1:
            raise ConfigError(
                f"numbers of {self.bound.bit_length()} bits and their masks do not fit under a key of {self.key_bits}: "
                "raise privacy.key_bits, or lower privacy.fraction_bits or privacy.whole_bits"
            )

    @cached_property
    def bits(self) -> int:
        """Of a slot."""
        return self.bound.bit_length() + HIDING_BITS + 2

    @cached_property
    def count(self) -> int:
        """Slots per plaintext, which stays below n / 2."""
        return (self.key_bits - 2) // self.bits

    def plaintexts(self, numbers: int) -> int:
        """How many it takes for so many numbers."""
        return -(-numbers // self.count)

    def masks(self, numbers: int, draw: Draw = secrets.randbits) -> list[int]:
        """A random one for each number."""
        length = self.bound.bit_length() + 1 + HIDING_BITS
        return [self.bound + draw(length) for _ in range(numbers)]

    def join(self, numbers: Sequence[int]) -> list[int]:
        """Plaintexts with these numbers in their slots."""
        shares = (numbers[i : i + self.count] for i in range(0, len(numbers), self.count))
        return [sum(number << (place * self.bits) for place, number in enumerate(share)) for share in shares]

    def split(self, plaintexts: Sequence[int], numbers: int) -> list[int]:
        """What is in the slots of plaintexts with so many numbers, none of which is negative."""
        low = (1 << self.bits) - 1
        found = [plain >> (place * self.bits) & low for plain in plaintexts for place in range(self.count)]
        return found[:numbers]

    def pack(self, key: PublicKey, ciphertexts: Sequence[mpz]) -> list[mpz]:
        """Ciphertexts of what `join` makes of the numbers under these ones, without knowing them."""
        shift, packed = 1 << self.bits, []
        for i in range(0, len(ciphertexts), self.count):
            *rest, total = ciphertexts[i : i + self.count]
            for ciphertext in reversed(rest):
                total = powmod(total, shift, key.square) * ciphertext % key.square
            packed.append(total)
        return packed
