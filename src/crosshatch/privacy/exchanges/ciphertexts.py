"""The two ways to simulate encryption: with real ciphertexts, or with their costs alone.

Both have the same gradients, bit for bit: those of fixed point, which are exact for the encoded numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from time import perf_counter
from typing import TypeVar

import numpy as np

from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.privacy.fixed_point import Whole, exact_products
from crosshatch.privacy.masked_gradients import LabelHolder, LinearSilo, gradient_slots
from crosshatch.privacy.measure_operations import measure_operations
from crosshatch.privacy.operations import OperationSeconds, side_by_side
from crosshatch.privacy.paillier import generate_keys
from crosshatch.privacy.powers import multiplications

T = TypeVar("T")
_HOLDER = "the label's holder"


@dataclass(frozen=True)
class DecryptedGradients:
    """Gradients as whole numbers by silo, row by row, and the seconds that parties computed."""

    gradients: Mapping[int, list[int]]
    encrypt: float  # at the label's holder
    multiply: Mapping[int, float]  # at each silo
    decrypt: float  # at the label's holder again, for all silos together


@dataclass(frozen=True)
class RealCiphertexts:
    """Everything is computed as the parties would, each with all cores, and timed."""

    cipher: Cipher
    threads: int
    names: tuple[str, ...]  # of all silos

    @cached_property
    def _holder(self) -> LabelHolder:
        holder = LabelHolder(generate_keys(self.cipher.key_bits), self.cipher.point, self.threads)
        holder.encrypt(np.zeros((1, 1), np.int64), {})  # makes the tables: part of set-up, as the key is
        return holder

    def exchange(
        self, derivatives: Whole, features: Mapping[int, Whole], count: Callable[[int], None]
    ) -> DecryptedGradients:
        """One message after the other, as bytes."""
        holder = self._holder
        silo = LinearSilo(holder.key.public, self.cipher.point, self.threads)
        peers = {j: f"silo '{self.names[j]}'" for j in features}
        asking = {peers[j]: x.shape[1] for j, x in features.items()}
        sent, encrypting = timed(partial(holder.encrypt, derivatives, asking))
        gradients, multiply, decrypting = {}, {}, 0.0
        for j, x in features.items():
            mask = partial(silo.mask, sent, x, outputs=derivatives.shape[1], peer=_HOLDER)
            (back, masked), multiply[j] = timed(mask)
            read, seconds = timed(partial(holder.decrypt, back, peer=peers[j], count=partial(count, j)))
            gradients[j], decrypting = silo.unmask(read, masked, peer=_HOLDER), decrypting + seconds
        return DecryptedGradients(gradients, encrypting, multiply, decrypting)


@dataclass(frozen=True)
class CostsAlone:
    """Numbers in clear, through the same fixed point; the seconds are those of the operations it would take."""

    cipher: Cipher
    threads: int

    @cached_property
    def _seconds(self) -> OperationSeconds:
        return self.cipher.seconds or measure_operations(self.cipher, threads=self.threads)

    def exchange(
        self, derivatives: Whole, features: Mapping[int, Whole], count: Callable[[int], None]
    ) -> DecryptedGradients:
        """Exact products, and how long they would take under encryption."""
        slots = gradient_slots(self.cipher.point, len(derivatives), self.cipher.key_bits)
        outputs = derivatives.shape[1]
        multiply, decrypting = {}, 0.0
        for j, x in features.items():
            count(j)
            numbers = outputs * x.shape[1]
            back = slots.plaintexts(numbers)
            multiplying = self._seconds.of({"multiply": outputs * multiplications(x, threads=self.threads)})
            packing = self._seconds.of({"pack": numbers - back})
            multiply[j] = multiplying + side_by_side([packing, *[self._seconds.mask] * back], self.threads)
            decrypting += self._seconds.of({"decrypt": back})
        gradients = {j: exact_products(derivatives, x) for j, x in features.items()}
        return DecryptedGradients(gradients, self._seconds.of({"encrypt": derivatives.size}), multiply, decrypting)


Ciphertexts = RealCiphertexts | CostsAlone
"""What becomes of one batch's derivatives (n, c) and of silos' features (n, d); who counts may refuse."""


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What it gives, and how long it took."""
    start = perf_counter()
    found = work()
    return found, perf_counter() - start
