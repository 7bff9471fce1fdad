"""Everything random comes from `(seed, purpose, numbers)`: parties that share the seed agree without a message."""

from __future__ import annotations

import zlib

import numpy as np


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A fresh generator for one purpose, for example `generator(7, "batch", round)`.

    >>> int(generator(7, "batch", 0).integers(100)) == int(generator(7, "batch", 0).integers(100))
    True
    """
    # the count of numbers too: numpy takes a missing last number for a zero
    return np.random.default_rng([seed, zlib.crc32(purpose.encode()), len(numbers), *numbers])


def torch_seed(seed: int, purpose: str, *numbers: int) -> int:
    """A 63-bit seed for `torch.manual_seed`, derived in the same way."""
    return int(generator(seed, purpose, *numbers).integers(2**63 - 1))
