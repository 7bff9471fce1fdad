"""Matrices of encrypted whole numbers: sums, products with clear numbers, masks, and the way back.

A matrix knows how large its numbers can be at most. Where a sum or a product could leave what the key can hold, it is
refused before anything is computed, whatever the numbers are.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from crosshatch.errors import ConfigError, MessageError
from crosshatch.privacy.fixed_point import Whole
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.paillier import Draw, PrivateKey, PublicKey
from crosshatch.privacy.powers import products_of_powers
from crosshatch.privacy.secret import Secret
from crosshatch.privacy.threads import run_all

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class EncryptedMatrix:
    """Ciphertexts (rows, columns), row by row, under one key; no number is larger in magnitude than `bound`."""

    key: PublicKey
    shape: tuple[int, int]
    values: tuple[mpz, ...]
    bound: int

    def __post_init__(self) -> None:
        """Refuse numbers that could wrap."""
        assert len(self.values) == self.shape[0] * self.shape[1]
        if self.bound > self.key.most:
            raise ConfigError(
                f"encrypted numbers could reach {self.bound.bit_length()} bits, a key of {self.key.bits} holds "
                f"{self.key.bits - 2}: raise privacy.key_bits, or lower the bits of fixed point"
            )

    @classmethod
    def of(
        cls,
        key: PublicKey | PrivateKey,
        numbers: Whole | npt.NDArray[np.object_],
        bound: int,
        *,
        threads: int = 1,
        draw: Draw = secrets.randbits,
    ) -> EncryptedMatrix:
        """Encrypt a matrix of whole numbers up to `bound`; its owner is faster."""
        public = key.public if isinstance(key, PrivateKey) else key
        rows, columns = numbers.shape
        values = key.encrypt(numbers.ravel().tolist(), threads=threads, draw=draw)
        return cls(public, (rows, columns), tuple(values), bound)

    def __add__(self, other: EncryptedMatrix) -> EncryptedMatrix:
        """The sum of two matrices under one key."""
        assert (self.key, self.shape) == (other.key, other.shape)
        square = self.key.square
        values = (a * b % square for a, b in zip(self.values, other.values, strict=True))
        return EncryptedMatrix(self.key, self.shape, tuple(values), self.bound + other.bound)

    @property
    def T(self) -> EncryptedMatrix:  # noqa: N802 - as arrays have it
        columns = (self.values[i :: self.shape[1]] for i in range(self.shape[1]))
        values = tuple(value for column in columns for value in column)
        return EncryptedMatrix(self.key, self.shape[::-1], values, self.bound)

    def transposed_product(self, numbers: Whole, bound: int, *, threads: int = 1) -> EncryptedMatrix:
        """This matrix, transposed, times a clear one (rows, k) of numbers up to `bound`: (columns, k)."""
        rows, columns = self.shape
        assert len(numbers) == rows
        reach = rows * self.bound * bound
        values = [
            value
            for column in range(columns)
            for value in products_of_powers(self.values[column::columns], numbers, self.key.square, threads=threads)
        ]
        return EncryptedMatrix(self.key, (columns, numbers.shape[1]), tuple(values), reach)

    def each_row_times(self, numbers: Whole, bound: int, *, threads: int = 1) -> EncryptedMatrix:
        """Each row times a clear matrix of its own, (rows, columns, k) of numbers up to `bound`: (rows, k)."""
        rows, columns = self.shape
        assert numbers.shape[:2] == self.shape
        work = [
            partial(products_of_powers, self.values[i * columns :][:columns], mine, self.key.square, threads=1)
            for i, mine in enumerate(numbers)
        ]
        values = tuple(value for row in run_all(work, threads=threads) for value in row)
        return EncryptedMatrix(self.key, (rows, numbers.shape[2]), values, columns * self.bound * bound)

    def take(self, places: npt.NDArray[np.int64]) -> EncryptedMatrix:
        """The numbers at these places (rows, columns), counted row by row."""
        values = tuple(self.values[place] for place in places.ravel().tolist())
        return EncryptedMatrix(self.key, (places.shape[0], places.shape[1]), values, self.bound)

    def decrypt(self, key: PrivateKey, *, threads: int = 1) -> list[int]:
        """The numbers, row by row."""
        return key.decrypt(self.values, threads=threads)

    def to_bytes(self) -> Bytes:
        """As it is sent: a row of bytes per ciphertext."""
        return to_bytes(self.values, self.key.ciphertext_bytes)

    @classmethod
    def from_bytes(
        cls, key: PublicKey, shape: tuple[int, int], bound: int, sent: Bytes, *, peer: str
    ) -> EncryptedMatrix:
        """What a party sent; a MessageError where it sent anything but so many ciphertexts."""
        return cls(key, shape, read_ciphertexts(key, shape[0] * shape[1], sent, peer=peer), bound)


@dataclass(frozen=True, repr=False)
class Masked(Secret):
    """Numbers that go back to the key's owner: packed and masked, with nothing left of how they were computed.

    A mask is uniform modulo n, one for each ciphertext: what the owner reads is uniform too, whatever the numbers are.
    """

    key: PublicKey
    slots: Slots
    numbers: int
    sent: tuple[mpz, ...]
    masks: tuple[mpz, ...]  # stay with the sender

    @classmethod
    def of(cls, matrix: EncryptedMatrix, *, threads: int = 1, draw: Draw = secrets.randbits) -> Masked:
        """Pack, mask and make anew all numbers of a matrix."""
        key, slots = matrix.key, Slots(matrix.bound, matrix.key.bits)
        masks = [key.uniform(draw) for _ in range(slots.plaintexts(len(matrix.values)))]
        packing: Callable[[], list[mpz]] = partial(slots.pack, key, matrix.values)
        noise: list[Callable[[], list[mpz]]] = [partial(_one_noise, key, draw) for _ in masks]
        packed, *fresh = run_all([packing, *noise], threads=threads)
        sent = [
            a * (1 + b * key.n) % key.square * u % key.square for a, b, (u,) in zip(packed, masks, fresh, strict=True)
        ]
        return cls(key, slots, len(matrix.values), tuple(sent), tuple(masks))

    def to_bytes(self) -> Bytes:
        return to_bytes(self.sent, self.key.ciphertext_bytes)

    def unmask(self, returned: Bytes, *, peer: str) -> list[int]:
        """The numbers, from what the owner read and sent; a MessageError where that cannot be."""
        read = read_numbers(returned, len(self.sent), self.key.plaintext_bytes, peer=peer)
        if any(number >= self.key.n for number in read):
            raise MessageError(f"{peer} sent back a number that is not below the key: changed on its way")
        plain = [int(self.key.signed(number - mask)) for number, mask in zip(read, self.masks, strict=True)]
        numbers = self.slots.split(plain, self.numbers)
        if numbers is None:
            raise MessageError(
                f"{peer} sent back a number that is larger than it can be: it, or what it was read from, was changed "
                "on its way"
            )
        return numbers


def _one_noise(key: PublicKey, draw: Draw) -> list[mpz]:
    return [key.uniform_noise(draw)]


def to_bytes(numbers: Sequence[int] | Sequence[mpz], length: int) -> Bytes:
    """A row of so many bytes per number."""
    raw = b"".join(int(number).to_bytes(length, "big") for number in numbers)
    return np.frombuffer(raw, dtype=np.uint8).reshape(len(numbers), length)


def read_numbers(sent: Bytes, count: int, length: int, *, peer: str) -> list[int]:
    """The numbers again; a MessageError where a party did not send just so many of that length."""
    rows = np.asarray(sent)
    if rows.dtype != np.uint8 or rows.shape != (count, length):
        shape = " x ".join(map(str, rows.shape)) or "one"
        kind = "bytes" if rows.dtype == np.uint8 else rows.dtype
        raise MessageError(
            f"{peer} sent {shape} {kind} where {count} numbers of {length} bytes are due: cut off, or under another key"
        )
    return [int.from_bytes(row.tobytes(), "big") for row in rows]


def read_ciphertexts(key: PublicKey, count: int, sent: Bytes, *, peer: str) -> tuple[mpz, ...]:
    """Just so many ciphertexts that a party sent."""
    values = tuple(mpz(number) for number in read_numbers(sent, count, key.ciphertext_bytes, peer=peer))
    key.require(values, peer)
    return values
