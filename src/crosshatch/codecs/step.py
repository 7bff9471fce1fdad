"""A stage that changes numbers and leaves as many: a limit on their size, noise, a mask."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np

from crosshatch.codecs.codec import Array, Draw, DTypes, Parts, Stage, require_finite


class Step(Stage):
    """What is sent is `change` of the numbers, once per message; the receiver takes it as it comes.

    A step stands alone or in a chain, before the stages that make a message shorter.

    >>> from dataclasses import dataclass
    >>> import torch
    >>> from crosshatch.codecs import Chain, Half
    >>> @dataclass(frozen=True)
    ... class Clip(Step):
    ...     most: float  # Euclidean length of a message
    ...     def change(self, values, draws):
    ...         lengths = np.linalg.norm(values, axis=1, keepdims=True)
    ...         return values * np.minimum(1, self.most / np.maximum(lengths, 1e-300))
    >>> Chain(Clip(1.0), Half()).roundtrip(torch.tensor([30.0, 40.0]))
    tensor([0.6001, 0.7998])
    """

    @abstractmethod
    def change(self, values: Array, draws: Sequence[Draw | None]) -> Array:
        """What is sent instead of values (m, n), a message per row; its draw names each one."""

    @final
    def reduce(self, values: Array, draws: Sequence[Draw | None]) -> tuple[Parts, Array]:
        """Nothing besides, and the changed numbers, as many and of the same type."""
        require_finite(np.abs(values).max(axis=1))
        changed = self.change(values, draws)
        assert changed.shape == values.shape, f"{type(self).__name__}.change returns {changed.shape} for {values.shape}"
        return (), changed.astype(values.dtype, copy=False)

    @final
    def restore(self, parts: Parts, values: Array, n: int, kind: DTypes) -> Array:  # noqa: ARG002
        return values
