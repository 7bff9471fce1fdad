"""A gradient that one silo alone reads, from derivatives it gets encrypted: a linear block's part of one exchange.

1. The label's holder encrypts the derivative D (n, c) of a batch's loss under its own key and sends it.
2. A silo with samples X (n, d) multiplies under the encryption, D^T X, adds a random mask to every number, and sends
   that back, packed: the holder could read it, but sees masks only.
3. The holder decrypts and returns what it read. The silo takes the masks away: it has its gradient, and no derivative.

All numbers are fixed point. The gradient is exact for the encoded numbers, rounded once at the end, so that it does not
depend on keys, masks or threads.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from gmpy2 import mpz

from crosshatch.errors import MessageError
from crosshatch.privacy.encrypted_matrix import Bytes, EncryptedMatrix, Masked, read_ciphertexts, to_bytes
from crosshatch.privacy.fixed_point import FixedPoint, Whole
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.paillier import Draw, PrivateKey, PublicKey


@dataclass(frozen=True)
class LabelHolder:
    """Who has the key. It reads no more than is due of a batch."""

    key: PrivateKey
    point: FixedPoint
    threads: int = 1
    draw: Draw = secrets.randbits
    _due: dict[str, int] = field(default_factory=dict)

    def encrypt(self, derivatives: Whole, asking: Mapping[str, int]) -> Bytes:
        """Step 1: a ciphertext per number of D, row by row. `asking` are those who get them, with their columns."""
        bound, (rows, outputs) = self.point.bound, derivatives.shape
        slots = gradient_slots(self.point, rows, self.key.public.bits)
        self._due.clear()
        self._due.update({peer: slots.plaintexts(outputs * columns) for peer, columns in asking.items()})
        return EncryptedMatrix.of(self.key, derivatives, bound, threads=self.threads, draw=self.draw).to_bytes()

    def decrypt(self, masked: Bytes, *, peer: str, count: Callable[[], None]) -> Bytes:
        """Step 3: what is under the ciphertexts that came back: one gradient of the batch for each who asked.

        Who asks may have computed it from any rows: `count` is told before anything is read, and may refuse.
        """
        if peer not in self._due:
            raise MessageError(f"{peer} sent ciphertexts to be read, and none are due of this batch: it had its answer")
        values = read_ciphertexts(self.key.public, self._due[peer], masked, peer=peer)
        count()
        del self._due[peer]
        return read_for(self.key, values, threads=self.threads)


def read_for(key: PrivateKey, values: Sequence[mpz], *, threads: int) -> Bytes:
    """What is under ciphertexts, as it is sent back: masked, so that who reads it cannot tell right from wrong."""
    read = [number % key.public.n for number in key.decrypt(values, threads=threads)]
    return to_bytes(read, key.public.plaintext_bytes)


@dataclass(frozen=True)
class LinearSilo:
    """Who has samples and a linear block."""

    key: PublicKey
    point: FixedPoint
    threads: int = 1
    draw: Draw = secrets.randbits

    def mask(self, sent: Bytes, features: Whole, *, outputs: int, peer: str) -> tuple[Bytes, Masked]:
        """Step 2: what goes back, and what takes the masks away again. Features are (n, d), with ones for a bias."""
        bound = self.point.bound
        derivatives = EncryptedMatrix.from_bytes(self.key, (len(features), outputs), bound, sent, peer=peer)
        product = derivatives.transposed_product(features, bound, threads=self.threads)
        masked = Masked.of(product, threads=self.threads, draw=self.draw)
        return masked.to_bytes(), masked

    def unmask(self, returned: Bytes, masked: Masked, *, peer: str) -> list[int]:
        """D^T X, row by row."""
        return masked.unmask(returned, peer=peer)


def gradient(numbers: Sequence[int], point: FixedPoint, rows: int, outputs: int) -> npt.NDArray[np.float64]:
    """The mean over so many rows, from D^T X as whole numbers: (outputs, columns)."""
    return point.decode(numbers, factors=2, divisor=rows).reshape(outputs, -1)


def gradient_slots(point: FixedPoint, rows: int, key_bits: int) -> Slots:
    """How the numbers of D^T X go back: none can be larger than the rows times two factors."""
    return Slots(rows * point.bound * point.bound, key_bits)
