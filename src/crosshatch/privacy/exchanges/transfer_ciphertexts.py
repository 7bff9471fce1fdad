"""The two ways to simulate an encrypted transfer: with real ciphertexts, or with their costs alone.

Both do the same sums and products, on other matrices, so that their gradients are the same bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Generic

import numpy as np

from crosshatch.privacy.counted_matrix import CountedMatrix
from crosshatch.privacy.encrypted_matrix import EncryptedMatrix, Masked, read_ciphertexts
from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.privacy.exchanges.ciphertexts import timed
from crosshatch.privacy.masked_gradients import gradient_slots, read_for
from crosshatch.privacy.measure_operations import MEASURED_ROWS, measure_operations
from crosshatch.privacy.operations import OperationSeconds, side_by_side
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.paillier import PrivateKey, generate_keys
from crosshatch.privacy.transfer_gradients import H, Plain, whole_square


@dataclass(frozen=True)
class EncryptedTerms(Generic[H]):
    """What one side was told by the other, encrypted: rows (n, d), a symmetric matrix (d, d), and who can read them."""

    rows: H
    square: H
    sender: int


@dataclass(frozen=True)
class Answer:
    """A side's gradient as whole numbers, and seconds: of its own work, and of reading at the key's owner."""

    numbers: list[int]
    multiply: float
    decrypt: float


@dataclass(frozen=True)
class RealTransfer:
    """Everything is computed as the sides would, each with a key of its own and all cores, and timed."""

    cipher: Cipher
    threads: int
    names: tuple[str, ...]  # of both silos

    @cached_property
    def _keys(self) -> tuple[PrivateKey, PrivateKey]:
        keys = generate_keys(self.cipher.key_bits), generate_keys(self.cipher.key_bits)
        for key in keys:
            key.encrypt([0])  # makes the tables: part of set-up, as the keys are
        return keys

    def tell(self, sender: int, plain: Plain) -> tuple[EncryptedTerms[EncryptedMatrix], float]:
        """What a side is told, through bytes and back, and the seconds that encrypting took."""
        key, bound = self._keys[sender], self.cipher.point.bound
        of = partial(EncryptedMatrix.of, key, threads=self.threads)
        longer = bound << self.cipher.point.fraction_bits
        (rows, half), seconds = timed(lambda: (of(plain.rows, longer), of(plain.half, bound)))
        read = partial(EncryptedMatrix.from_bytes, key.public, peer=self._peer(sender))
        arrived = [read(one.shape, one.bound, one.to_bytes()) for one in (rows, half)]
        return EncryptedTerms(arrived[0], arrived[1].take(whole_square(rows.shape[1])), sender), seconds

    def work(
        self, told: EncryptedTerms[EncryptedMatrix], compute: Callable[[], EncryptedMatrix]
    ) -> tuple[EncryptedMatrix, float]:
        assert told.rows.key == self._keys[told.sender].public
        return timed(compute)

    def gradient(
        self, told: EncryptedTerms[EncryptedMatrix], compute: Callable[[], list[EncryptedMatrix]], slots: Slots,
        count: Callable[[], None],
    ) -> Answer:  # fmt: skip
        """One message after the other, as bytes."""
        owner = self._keys[told.sender]
        (sent, masked), multiply = timed(partial(self._mask, compute, slots))
        due = slots.plaintexts(masked.numbers)
        peer = self._peer(1 - told.sender)
        values = read_ciphertexts(owner.public, due, sent, peer=peer)
        count()
        returned, decrypt = timed(partial(read_for, owner, values, threads=self.threads))
        return Answer(masked.unmask(returned, peer=self._peer(told.sender)), multiply, decrypt)

    def _peer(self, silo: int) -> str:
        return f"silo '{self.names[silo]}'"

    def _mask(self, compute: Callable[[], list[EncryptedMatrix]], slots: Slots) -> tuple[np.ndarray, Masked]:
        layers = compute()
        assert all(layer.bound <= slots.bound for layer in layers)
        values = tuple(value for layer in layers for value in layer.values)
        key = layers[0].key
        masked = Masked.of(EncryptedMatrix(key, (1, len(values)), values, slots.bound), threads=self.threads)
        return masked.to_bytes(), masked


@dataclass(frozen=True)
class TransferCosts:
    """Numbers in clear, through the same fixed point; the seconds are those of the operations it would take."""

    cipher: Cipher
    threads: int
    made: Counter[str] = field(default_factory=Counter)

    @cached_property
    def _seconds(self) -> OperationSeconds:
        return self.cipher.seconds or measure_operations(self.cipher, threads=self.threads)

    def tell(self, sender: int, plain: Plain) -> tuple[EncryptedTerms[CountedMatrix], float]:
        """An encryption per number."""
        bound = self.cipher.point.bound
        rows = CountedMatrix(plain.rows, bound << self.cipher.point.fraction_bits, self.made)
        half = CountedMatrix(plain.half.astype(object), bound, self.made)
        told = EncryptedTerms(rows, half.take(whole_square(rows.shape[1])), sender)
        return told, self._seconds.of({"encrypt": plain.size})

    def work(
        self,
        told: EncryptedTerms[CountedMatrix],  # noqa: ARG002
        compute: Callable[[], CountedMatrix],
    ) -> tuple[CountedMatrix, float]:
        """By the operations that were counted."""
        self.made.clear()
        return compute(), self._seconds.of(self.made)

    def gradient(
        self, told: EncryptedTerms[CountedMatrix], compute: Callable[[], list[CountedMatrix]], slots: Slots,  # noqa: ARG002
        count: Callable[[], None],
    ) -> Answer:  # fmt: skip
        """By the operations that were counted, and those of packing, masking and reading."""
        count()
        self.made.clear()
        layers = compute()
        assert all(layer.bound <= slots.bound for layer in layers)
        numbers = [int(number) for layer in layers for number in layer.values.flat]
        back = slots.plaintexts(len(numbers))
        usual = gradient_slots(self.cipher.point, MEASURED_ROWS, self.cipher.key_bits)
        # A number is moved to its slot by a power of as many squarings as the slot has bits.
        packing = self._seconds.pack * (len(numbers) - back) * slots.bits / usual.bits
        masking = side_by_side([packing, *[self._seconds.mask] * back], self.threads)
        reading = self._seconds.of({"decrypt": back})
        return Answer(numbers, self._seconds.of(self.made) + masking, reading)


TransferCiphertexts = RealTransfer | TransferCosts
"""What becomes of numbers that one side tells the other, who works with them: a gradient is masked, and read there."""
