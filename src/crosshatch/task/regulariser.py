"""The regulariser: a smooth L2 term, and an L1 term taken through its proximal operator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crosshatch.errors import ModelError

if TYPE_CHECKING:  # a config is checked without torch, which takes seconds to import
    from torch import Tensor

LARGEST = 1e30  # beyond, penalties of ordinary weights overflow


@dataclass(frozen=True)
class Regulariser:
    """`l2 / 2 |theta|^2 + l1 |theta|_1` on a block's flat parameters theta (..., p); both weights default to none.

    A trained head is not regularised, and biases only with `penalise_bias`. `free` (p,) is true where a number is left
    alone, None where none is (`Task.free`).

    The L2 term enters the gradient. The L1 term has no gradient at zero, so a step of size s on everything else is
    followed by `proximal(theta, s)`, which sets small parameters to exactly zero.

    >>> import torch
    >>> Regulariser(l1=0.5).proximal(torch.tensor([2.0, 0.25]), step=1.0).tolist()
    [1.5, 0.0]
    """

    l2: float = 0.0
    l1: float = 0.0
    penalise_bias: bool = True

    def __post_init__(self) -> None:
        for name, weight in (("l2", self.l2), ("l1", self.l1)):
            if not (math.isfinite(weight) and weight >= 0):
                raise ModelError(
                    f"regulariser weight {name} = {weight!r} is not a finite number >= 0: change model.{name}"
                )
            if weight > LARGEST:
                raise ModelError(
                    f"regulariser weight {name} = {weight!r} is more than single precision holds: "
                    f"set model.{name} to at most {LARGEST:g}"
                )

    def penalty(self, flat: Tensor, free: Tensor | None = None) -> Tensor:
        """Both terms together, (...)."""
        flat = _without(flat, free)
        return 0.5 * self.l2 * flat.square().sum(-1) + self.l1 * flat.abs().sum(-1)

    def gradient(self, flat: Tensor, free: Tensor | None = None) -> Tensor:
        """Gradient of the smooth term alone, `l2 * theta` (..., p)."""
        return self.l2 * _without(flat, free)

    def proximal(self, flat: Tensor, step: float, free: Tensor | None = None) -> Tensor:
        """`argmin_z |z - theta|^2 / 2 + step * l1 * |z|_1`: every parameter moves towards zero by `step * l1`."""
        if self.l1 == 0:
            return flat
        from torch.nn import functional

        return _but(free, flat, functional.softshrink(flat, step * self.l1))

    def shrink(self, flat: Tensor, step: float, free: Tensor | None = None) -> Tensor:
        """The proximal operator of both terms, `argmin_z |z - theta|^2 / 2 + step (l2/2 |z|^2 + l1 |z|_1)`."""
        shrunk = self.proximal(flat, step)
        return _but(free, flat, shrunk / (1.0 + step * self.l2) if self.l2 else shrunk)


def _without(flat: Tensor, free: Tensor | None) -> Tensor:
    """Zeros where the regulariser leaves numbers alone."""
    return flat if free is None else flat.masked_fill(free, 0.0)


def _but(free: Tensor | None, flat: Tensor, changed: Tensor) -> Tensor:
    """What was changed, but for what the regulariser leaves alone."""
    return changed if free is None else changed.where(~free, flat)
