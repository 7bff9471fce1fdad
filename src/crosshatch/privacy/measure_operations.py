"""How long operations on ciphertexts last here: measured once, on numbers like those of a round."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import fields
from statistics import median
from time import perf_counter

import numpy as np

from crosshatch.privacy.encrypted_matrix import EncryptedMatrix, Masked
from crosshatch.privacy.exchanges.cipher import Cipher
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.paillier import generate_keys
from crosshatch.privacy.powers import multiplications

MEASURED_ROWS, _COLUMNS, _TIMES = 128, 8, 5
_DIGITS = 3  # significant


def measure_operations(cipher: Cipher, *, threads: int) -> OperationSeconds:
    """Seconds per operation, with so many threads at work on each of them together."""
    key, point = generate_keys(cipher.key_bits), cipher.point
    draw = np.random.default_rng(0)
    x = point.encode(np.clip(draw.standard_normal((MEASURED_ROWS, _COLUMNS)), -1, 1) * min(2.0, point.limit))
    d = point.encode(draw.uniform(-1, 1, (MEASURED_ROWS, 1)))
    encrypted = EncryptedMatrix.of(key, d, point.bound, threads=threads)  # makes the tables, which is not counted
    product = encrypted.transposed_product(x, point.bound, threads=threads)
    slots = Slots(product.bound, key.public.bits)
    packed = slots.pack(key.public, product.values)
    masked = Masked.of(product, threads=threads)
    pack = _seconds(lambda: slots.pack(key.public, product.values)) / max(1, _COLUMNS - len(packed))
    found = OperationSeconds(
        encrypt=_seconds(lambda: EncryptedMatrix.of(key, d, point.bound, threads=threads)) / MEASURED_ROWS,
        multiply=_seconds(lambda: encrypted.transposed_product(x, point.bound, threads=threads))
        / multiplications(x, threads=threads),
        pack=pack,
        mask=_seconds(lambda: key.public.uniform_noise(secrets.randbits)),
        decrypt=_seconds(lambda: key.decrypt(masked.sent[:1], threads=threads)),
    )
    return OperationSeconds(**{one.name: float(f"{getattr(found, one.name):.{_DIGITS}g}") for one in fields(found)})


def _seconds(work: Callable[[], object]) -> float:
    """The median of a few times."""
    times = []
    for _ in range(_TIMES):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return median(times)
