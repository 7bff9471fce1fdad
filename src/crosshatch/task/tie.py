"""The hook on which transfer hangs: what is asked of a task whose objective ties two silos' embeddings together.

A has the labels, B has none; a class mean of A's embeddings takes the place of a head. `Transfer` is such a tie, and
explains the words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from crosshatch.task.losses import Loss


@dataclass(frozen=True)
class Sides:
    """What the objective of common samples is made of, each (n, d): u_A, u_B, and y Phi_A."""

    u_a: Tensor
    u_b: Tensor
    signed_mean: Tensor

    @property
    def margins(self) -> Tensor:
        """y phi, (n, 1)."""
        return (self.signed_mean * self.u_b).sum(-1, keepdim=True)

    @property
    def apart(self) -> Tensor:
        """u_B - u_A, (n, d)."""
        return self.u_b - self.u_a


class Tie(Protocol):
    """How the two are tied together."""

    @property
    def alignment(self) -> str: ...
    @property
    def weight(self) -> float: ...
    @property
    def mean_samples(self) -> int | None: ...
    def check(self, silos: Sequence[str], widths: Sequence[int], loss: Loss) -> None: ...
    def class_mean(self, u_a: Tensor, y: Tensor) -> Tensor: ...
    def components(self, u_a: Tensor, class_mean: Tensor, y: Tensor) -> Tensor: ...
    def at_labels(self, own: Tensor, u_b: Tensor, class_mean: Tensor, y: Tensor) -> Sides: ...
    def at_other(self, own: Tensor, components: Tensor) -> Sides: ...
    def aligned(self, u_a: Tensor, u_b: Tensor) -> Tensor: ...
    def values(self, loss: Loss, sides: Sides) -> Tensor: ...
    def starting_point(self, sides: Sides) -> Tensor: ...
    def slopes(self, loss: Loss, sides: Sides, start: Tensor | None, anticipation: float) -> Sides: ...
