"""What a worker is asked for, one piece at a time; rows are numbered from the beginning of the piece."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from torch import Tensor

from crosshatch.local.forward import aligned
from crosshatch.local.problem import Problem
from crosshatch.local.solve import Way

Ids = npt.NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Embed:
    """Embeddings of rows of a silo under weights (p,) for all, or (clients, p) for each its own.

    `seed` is the run's, the round and the part in training, None in evaluation; `numbers` and `counts` are those of the
    clients, whose rows lie one after another. With `keep` the pass is kept for the first local step of this `group`.
    """

    silo: int
    piece: int
    rows: Tensor
    weights: Tensor
    numbers: Ids
    counts: Ids
    seed: tuple[int, ...] | None
    keep: bool = False
    group: int = 0

    @property
    def round(self) -> int | None:
        return None if self.seed is None else self.seed[1]

    @property
    def common(self) -> tuple[Tensor, ...]:
        """What others are told as well."""
        return (self.weights,) if self.weights.dim() == 1 else ()


@dataclass(frozen=True)
class Steps:
    """Local steps of some clients: their weighted sum (p,), or with `keep` their blocks (clients, p).

    In the problem's parts rows stand for samples. `begins`: the first step begins with the pass that this group kept at
    the exchange, or with the same one made again.
    """

    piece: int
    problem: Problem
    weights: Tensor
    way: Way
    keep: bool
    keep_passes: bool
    begins: int | None

    @property
    def round(self) -> int:
        return self.problem.seed[1]

    @property
    def common(self) -> tuple[Tensor, ...]:
        """What others are told as well."""
        own = (self.problem.start,) if self.problem.start.dim() == 1 else ()
        return own if self.problem.head is None else (*own, self.problem.head)


Request = Embed | Steps


def settled(request: Request) -> Request:
    """The same with tensors as they lie after a journey: numbers of tensors inside others may round differently."""
    if isinstance(request, Embed):
        return _aligned(request)
    problem = _aligned(request.problem)
    parts = tuple(replace(part, loss_inputs=_aligned(part.loss_inputs)) for part in problem.parts)
    return replace(_aligned(request), problem=replace(problem, parts=parts))


def _aligned(value: T) -> T:
    """A dataclass with each of its own tensors aligned."""
    held: Any = value
    tensors = {one.name: x for one in fields(held) if isinstance(x := getattr(held, one.name), Tensor)}
    changed: T = replace(held, **{name: aligned(x) for name, x in tensors.items()})
    return changed
