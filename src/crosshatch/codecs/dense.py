"""Codecs that send every number: as it is, or in half precision."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosshatch.codecs.codec import Array, Draw, DTypes, Parts, Stage, require_finite

_HALF = np.dtype("<f2")
_LARGEST = 65504.0  # of half precision


@dataclass(frozen=True)
class Identity(Stage):
    """Everything as it is.

    >>> import torch
    >>> Identity().encode(torch.tensor([1.0])).hex()
    '0000803f'
    """

    def __str__(self) -> str:
        return "identity"

    @property
    def keeps_all(self) -> bool:
        return True

    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:  # noqa: ARG002
        return (), values

    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:  # noqa: ARG002
        return values


@dataclass(frozen=True)
class Half(Stage):
    """Half precision (float16), rounded to nearest; what is beyond its largest number, 65504, becomes that number.

    >>> import torch
    >>> Half().roundtrip(torch.tensor([1.0, 1e6, 1e-9])).tolist()
    [1.0, 65504.0, 0.0]
    """

    def __str__(self) -> str:
        return "half"

    def kind(self, kind: DTypes) -> DTypes:  # noqa: ARG002
        return _HALF

    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:  # noqa: ARG002
        if values.dtype == _HALF:
            return (), values
        clipped = np.clip(values, -_LARGEST, _LARGEST)
        require_finite(values)
        return (), clipped.astype(_HALF)

    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:  # noqa: ARG002
        return values.astype(kind)
