"""Several numbers in one plaintext, each in a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gmpy2 import mpz, powmod

from crosshatch.errors import ConfigError
from crosshatch.privacy.paillier import PublicKey


@dataclass(frozen=True)
class Slots:
    """Slots in the plaintexts of a key, for numbers of a magnitude up to `bound`.

    With `bound` added no number is negative, and none reaches the next slot.

    >>> slots = Slots(bound=1000, key_bits=64)
    >>> slots.bits, slots.count
    (11, 5)
    >>> slots.split(slots.join([3, -1, 4, -1, 5, -9]), 6)
    [3, -1, 4, -1, 5, -9]
    """

    bound: int
    key_bits: int

    def __post_init__(self) -> None:
        """Refuse numbers that are too long for the key."""
        if self.count < 1:
            raise ConfigError(
                f"numbers of {self.bound.bit_length()} bits do not fit under a key of {self.key_bits}: raise "
                "privacy.key_bits, or lower privacy.fraction_bits or privacy.whole_bits"
            )

    @cached_property
    def bits(self) -> int:
        """Of a slot: from -bound to bound."""
        return self.bound.bit_length() + 1

    @cached_property
    def count(self) -> int:
        """Slots per plaintext, which stays below n / 2."""
        return (self.key_bits - 2) // self.bits

    def plaintexts(self, numbers: int) -> int:
        """How many it takes for so many numbers."""
        return -(-numbers // self.count)

    def join(self, numbers: Sequence[int]) -> list[int]:
        """Plaintexts with these numbers in their slots; they may be negative."""
        shares = (numbers[i : i + self.count] for i in range(0, len(numbers), self.count))
        return [sum(number << (place * self.bits) for place, number in enumerate(share)) for share in shares]

    def split(self, plaintexts: Sequence[int], numbers: int) -> list[int] | None:
        """The numbers in the slots of plaintexts that `join` makes of so many; None where it makes no such ones."""
        low, found = (1 << self.bits) - 1, []
        for plain, begin in zip(plaintexts, range(0, numbers, self.count), strict=True):
            here = min(self.count, numbers - begin)
            lifted = plain + sum(self.bound << (place * self.bits) for place in range(here))
            if not 0 <= lifted < 1 << (here * self.bits):
                return None
            found += [(lifted >> (place * self.bits) & low) - self.bound for place in range(here)]
        return found if all(number <= self.bound for number in found) else None

    def pack(self, key: PublicKey, ciphertexts: Sequence[mpz]) -> list[mpz]:
        """Ciphertexts of what `join` makes of the numbers under these ones, without knowing them."""
        shift, packed = 1 << self.bits, []
        for i in range(0, len(ciphertexts), self.count):
            *rest, total = ciphertexts[i : i + self.count]
            for ciphertext in reversed(rest):
                total = powmod(total, shift, key.square) * ciphertext % key.square
            packed.append(total)
        return packed
