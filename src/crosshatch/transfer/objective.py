"""Transfer between two silos: A has labels, B has none; the samples that both have tie their embeddings together.

Liu, Chen, Yang, arXiv:1812.03337.
u_A, u_B: embeddings (n, d)   y: labels as -1 and +1   Phi_A: the class mean (d,), mean of y u_A over A's samples
phi = Phi_A . u_B: the score of a sample of B   l: loss   gamma: weight of the alignment

On a sample that both have the objective is `l(y phi) + gamma alignment(u_A, u_B)`. What each side needs of the other is
frozen for a round; these are the components that travel:

    B to A   u_B (n, d)
    A to B   u_A (n, d) and y Phi_A (n, d), side by side; where B knows the labels, Phi_A (d,) stands for the second

Phi_A takes the place of a head: its numbers follow from A's block, and nobody trains it apart from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from crosshatch.errors import ModelError
from crosshatch.task.losses import Logistic, Loss, TaylorLogistic
from crosshatch.task.model_settings import require_transfer
from crosshatch.task.tie import Sides

Alignment = Literal["product", "distance"]


@dataclass(frozen=True)
class Transfer:
    """How the embeddings of two silos are tied together; the silo with the labels is the head's holder.

    `alignment` of a common sample is "product", -u_A . u_B, or "distance", the squared distance of the two; `weight` is
    gamma. `mean_samples` of A's samples are drawn per round for Phi_A; None: all of them.

    >>> Transfer(alignment="distance", weight=0.1).mean_samples is None
    True
    """

    alignment: Alignment = "product"
    weight: float = 0.01
    mean_samples: int | None = None

    def __post_init__(self) -> None:
        require_transfer(self.alignment, self.weight, self.mean_samples)

    def class_mean(self, u_a: Tensor, y: Tensor) -> Tensor:
        """Phi_A (d,) of samples with embeddings (n, d) and labels (n,) of 0 and 1."""
        # not a product of the two, which adds up in another order with more threads
        return (_signs(y).unsqueeze(-1) * u_a).mean(0)

    def components(self, u_a: Tensor, class_mean: Tensor, y: Tensor) -> Tensor:
        """What A tells B of samples with labels (n,), side by side (n, 2 d)."""
        return torch.cat([u_a, _signs(y).unsqueeze(-1) * class_mean], dim=-1)

    def at_labels(self, own: Tensor, u_b: Tensor, class_mean: Tensor, y: Tensor) -> Sides:
        """The sides as A has them: its own embeddings and Phi_A move, what B told is frozen."""
        return Sides(own, u_b, _signs(y).unsqueeze(-1) * class_mean)

    def at_other(self, own: Tensor, components: Tensor) -> Sides:
        """The sides as B has them: its own embeddings move, what A told is frozen."""
        u_a, signed_mean = components.chunk(2, dim=-1)
        return Sides(u_a, own, signed_mean)

    def values(self, loss: Loss, sides: Sides) -> Tensor:
        """The objective of each sample, (n,): that of the margin is the loss of the margin as a score of label 1."""
        return loss.value(sides.margins, _ones(sides)) + self.aligned(sides.u_a, sides.u_b)

    def aligned(self, u_a: Tensor, u_b: Tensor) -> Tensor:
        """gamma times the alignment of each sample, (n,); the same whichever of the two comes first."""
        if self.alignment == "product":
            return -self.weight * (u_a * u_b).sum(-1)
        return self.weight * (u_a - u_b).square().sum(-1)

    def starting_point(self, sides: Sides) -> Tensor:
        """Where the sides are at an exchange, for steps that look ahead of it: margins and differences (n, 1 + d)."""
        return torch.cat([sides.margins, sides.apart], dim=-1)

    def slopes(self, loss: Loss, sides: Sides, start: Tensor | None, anticipation: float) -> Sides:
        """The derivatives of each sample's objective by u_A, u_B and y Phi_A, (n, d) each.

        With a start they are as if the other side moved along: the loss's derivative is taken at margins `anticipation`
        times as far from where they stood as this side alone has moved them, and so is that of the squared distance at
        the differences. A product's derivative is constant.
        """
        margins, apart = sides.margins, sides.apart
        if start is not None:
            margins = torch.lerp(start[..., :1], margins, anticipation)
            apart = torch.lerp(start[..., 1:], apart, anticipation)
        at_margins = loss.derivative(margins, _ones(sides))
        if self.alignment == "product":
            at_a, at_b = -self.weight * sides.u_b, -self.weight * sides.u_a
        else:
            at_b = 2 * self.weight * apart
            at_a = -at_b
        return Sides(at_a, at_b + at_margins * sides.signed_mean, at_margins * sides.u_b)

    def check(self, silos: Sequence[str], widths: Sequence[int], loss: Loss) -> None:
        """Refuse other than two silos with embeddings of one width, and a loss that the labels' signs do not fit."""
        require_two_silos(len(silos))
        if widths[0] != widths[1]:
            raise ModelError(
                f"silo '{silos[0]}' has embeddings of width {widths[0]}, silo '{silos[1]}' of width {widths[1]}: "
                "transfer compares them, set model.outputs to the same value in both"
            )
        require_signs(loss)


def require_two_silos(count: int) -> None:
    if count != 2:
        raise ModelError(
            f"model.fusion = 'transfer' is between two silos, this federation has {count}: name two silos "
            "(federation.silos), or use model.fusion = 'head'"
        )


def require_signs(loss: Loss) -> None:
    """Refuse a loss of anything but labels -1 and +1 that all count the same."""
    if not isinstance(loss, Logistic | TaylorLogistic):
        raise ModelError(
            f"model.fusion = 'transfer' with loss '{loss.name}': it takes labels of two classes, 'logistic' or "
            "'taylor_logistic', and no weights: choose two classes by data.positive, leave class and sample weights out"
        )


def _signs(y: Tensor) -> Tensor:
    return 2 * y - 1


def _ones(sides: Sides) -> Tensor:
    return torch.ones_like(sides.u_b[..., 0])
