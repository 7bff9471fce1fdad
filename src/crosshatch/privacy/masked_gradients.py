"""A gradient that nobody else learns, from derivatives that stay hidden: a linear block's part of one exchange.

1. The label's holder encrypts the derivative D (n, c) of a batch's loss under its own key and sends it.
2. A silo with samples X (n, d) multiplies under the encryption, D^T X, adds a random mask to every number, and sends
   that back, packed: the holder could read it, but sees masks only.
3. The holder decrypts and returns what it read. The silo takes the masks away: it has its gradient, and no derivative.

All numbers are fixed point. The gradient is exact for the encoded numbers, rounded once at the end, so that it does not
depend on keys, masks or threads.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from crosshatch.privacy.encrypted_matrix import Bytes, EncryptedMatrix, Masked, from_bytes, to_bytes
from crosshatch.privacy.fixed_point import FixedPoint, Whole
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.paillier import Draw, PrivateKey, PublicKey


@dataclass(frozen=True)
class LabelHolder:
    """Who has the key."""

    key: PrivateKey
    point: FixedPoint
    threads: int = 1
    draw: Draw = secrets.randbits

    def encrypt(self, derivatives: Whole) -> Bytes:
        """Step 1: a ciphertext per number of D, row by row."""
        bound = self.point.bound
        return EncryptedMatrix.of(self.key, derivatives, bound, threads=self.threads, draw=self.draw).to_bytes()

    def decrypt(self, masked: Bytes) -> Bytes:
        """Step 3: what is under the ciphertexts that came back."""
        values = [mpz(number) for number in from_bytes(masked)]
        return to_bytes(self.key.decrypt(values, threads=self.threads), self.key.public.plaintext_bytes)


@dataclass(frozen=True)
class LinearSilo:
    """Who has samples and a linear block."""

    key: PublicKey
    point: FixedPoint
    threads: int = 1
    draw: Draw = secrets.randbits

    def mask(self, sent: Bytes, features: Whole) -> tuple[Bytes, Masked]:
        """Step 2: what goes back, and what takes the masks away again. Features are (n, d), with ones for a bias."""
        rows, bound = len(features), self.point.bound
        derivatives = EncryptedMatrix.from_bytes(self.key, (rows, len(sent) // rows), bound, sent)
        product = derivatives.transposed_product(features, bound, threads=self.threads)
        masked = Masked.of(product, threads=self.threads, draw=self.draw)
        return masked.to_bytes(self.key), masked

    def unmask(self, returned: Bytes, masked: Masked) -> list[int]:
        """D^T X, row by row."""
        return masked.unmask(from_bytes(returned))


def gradient(numbers: Sequence[int], point: FixedPoint, rows: int, outputs: int) -> npt.NDArray[np.float64]:
    """The mean over so many rows, from D^T X as whole numbers: (outputs, columns)."""
    return point.decode(numbers, factors=2, divisor=rows).reshape(outputs, -1)


def gradient_slots(point: FixedPoint, rows: int, key_bits: int) -> Slots:
    """How the numbers of D^T X go back: none can be larger than the rows times two factors."""
    return Slots(rows * point.bound * point.bound, key_bits)
