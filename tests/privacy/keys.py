"""Keys and randomness for tests: short and seeded, so that they protect nothing and every run has the same."""

from __future__ import annotations

from functools import cache
from random import Random

from crosshatch.privacy.paillier import Draw, PrivateKey, generate_keys


def seeded(seed: int) -> Draw:
    """Random bits that are the same in every run."""
    return Random(seed).getrandbits


@cache
def short_key(bits: int = 512) -> PrivateKey:
    """A pair of keys too short to protect anything."""
    return generate_keys(bits, draw=seeded(bits), weak=True)


def nobody() -> None:
    """Counts what is decrypted."""
