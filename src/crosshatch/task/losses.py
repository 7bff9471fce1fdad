"""Losses with their derivatives by hand: one value per sample, any leading dimensions (clients, buckets) in front.

Shapes: scores (..., n, c), labels y (..., n), values (..., n), derivatives (..., n, c). The derivative is that of each
sample's own loss with respect to its own scores; whoever averages over a batch divides by its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, final

import torch
from torch import Tensor
from torch.nn import functional

from crosshatch.errors import DataError, ModelError


@final
@dataclass(frozen=True)
class Squared:
    """Half the squared residual, `(score - y)^2 / 2`, for one real score per sample (c = 1).

    >>> Squared().value(torch.tensor([[3.0]]), torch.tensor([1.0]))
    tensor([2.])
    """

    name: ClassVar[str] = "squared"
    curvature: ClassVar[float] = 1.0  # no second derivative in the scores is above
    target: ClassVar[str] = "regression"

    def scores(self, classes: int) -> int:  # noqa: ARG002 - the same question to every loss
        """How many scores a sample needs: one."""
        return 1

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each sample, (..., n)."""
        return 0.5 * (_single(scores) - y).square()

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`score - y`, (..., n, 1)."""
        return scores - y.unsqueeze(-1)

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far since this one was taken: it moves with them."""
        return derivative + moved

    def predict(self, scores: Tensor) -> Tensor:
        """The predicted values, (..., n)."""
        return _single(scores)


@final
@dataclass(frozen=True)
class Logistic:
    """Negative log-likelihood of labels in {0, 1} under `sigmoid(score)`, one score per sample (c = 1).

    With the margin m = (2y - 1) score the loss is `log(1 + exp(-m))`, without cancellation at either end.

    >>> Logistic().derivative(torch.tensor([[0.0]]), torch.tensor([1.0]))
    tensor([[-0.5000]])
    """

    name: ClassVar[str] = "logistic"
    curvature: ClassVar[float] = 0.25  # no second derivative in the scores is above
    target: ClassVar[str] = "binary"

    def scores(self, classes: int) -> int:  # noqa: ARG002
        """How many scores a sample needs: one."""
        return 1

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each sample, (..., n)."""
        return -functional.logsigmoid(_single(scores) * (2 * y - 1))

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`sigmoid(score) - y`, (..., n, 1)."""
        return torch.sigmoid(scores) - y.unsqueeze(-1)

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far since this one was taken.

        Its sign is the label: with the margin m it is -sigmoid(-m) for label 1 and sigmoid(-m) for label 0. A zero, of
        a sample without any doubt left or one that a codec dropped, does not tell, and stays. What is added is the
        change alone, so that a derivative that a codec made inexact stays what it was where nothing moves.
        """
        sign = torch.where(derivative < 0, -1.0, 1.0).to(derivative)
        doubt = derivative.abs().clamp(max=1 - torch.finfo(derivative.dtype).eps)  # sigmoid(-m)
        margin = torch.log1p(-doubt) - torch.log(doubt)
        return derivative + sign * (torch.sigmoid(sign * moved - margin) - torch.sigmoid(-margin))

    def predict(self, scores: Tensor) -> Tensor:
        """The probabilities of the positive class, (..., n)."""
        return torch.sigmoid(_single(scores))


@final
@dataclass(frozen=True)
class CrossEntropy:
    """Negative log-likelihood of int64 class labels under `softmax(scores)`, one score per class.

    >>> CrossEntropy().predict(torch.zeros(1, 4))
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    name: ClassVar[str] = "cross_entropy"
    curvature: ClassVar[float] = 0.5  # no second derivative in the scores is above
    target: ClassVar[str] = "multiclass"

    def scores(self, classes: int) -> int:
        """How many scores a sample needs: one per class."""
        if classes < 2:
            raise ModelError(f"loss 'cross_entropy' needs at least 2 classes, the data has {classes}: use another loss")
        return classes

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each sample, (..., n)."""
        return -torch.log_softmax(scores, dim=-1).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`softmax(scores) - onehot(y)`, (..., n, c)."""
        chosen = y.unsqueeze(-1)
        return torch.softmax(scores, dim=-1).scatter_add(-1, chosen, torch.full_like(chosen, -1, dtype=scores.dtype))

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far since this one was taken.

        Its only negative number is the label's; with 1 added there it is the probabilities, whose logarithms are the
        scores up to a constant. A sample without a negative number does not tell, and stays; see `Logistic`.
        """
        label = derivative.argmin(-1, keepdim=True)
        lowest = torch.finfo(derivative.dtype).tiny
        chances = derivative.scatter_add(-1, label, torch.ones_like(label, dtype=derivative.dtype))
        scores = chances.clamp(min=lowest).log()
        change = torch.softmax(scores + moved, dim=-1) - torch.softmax(scores, dim=-1)
        tells = derivative.gather(-1, label) < 0
        return torch.where(tells, derivative + change, derivative)

    def predict(self, scores: Tensor) -> Tensor:
        """The class probabilities, (..., n, c)."""
        return torch.softmax(scores, dim=-1)


class Loss(Protocol):
    """What every loss has, a user's own included; in that `continued` and `curvature` may be missing.

    Without the first, methods that let derivatives go on are refused; without the second, those that ask for a bound of
    the second derivatives in the scores.
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def target(self) -> str:
        """For which labels it is."""
        ...

    @property
    def curvature(self) -> float:
        """No second derivative in the scores is above."""
        ...

    def scores(self, classes: int) -> int:
        """How many scores a sample needs."""
        ...

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        """Loss of each sample, (..., n)."""
        ...

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """Of each sample's loss in its scores, (..., n, c)."""
        ...

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far since this one was taken."""
        ...

    def predict(self, scores: Tensor) -> Tensor:
        """What scores say of the label: probabilities (..., n) or (..., n, c), or values (..., n)."""
        ...


LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic(), "cross_entropy": CrossEntropy()}


def predicted_classes(loss: Loss, scores: Tensor) -> Tensor:
    """Classes (n,) for scores (n, c); a binary score predicts class 1 from probability one half upwards, exclusively.

    Of several equal scores the lower class is predicted.
    """
    return (scores[:, 0] > 0).long() if loss.target == "binary" else scores.argmax(dim=1)


def require_target(loss: Loss, target: str) -> None:
    """Refuse a loss whose labels are of another kind than the data's ("binary", "multiclass" or "regression")."""
    if loss.target != target:
        fitting = next(kind.name for kind in (Squared, Logistic, CrossEntropy) if kind.target == target)
        raise ModelError(f"loss {loss.name!r} is for {loss.target} labels, the data has {target} ones: use {fitting!r}")


def require_labels(loss: Loss, y: Tensor, classes: int, which: str) -> None:
    """Refuse labels (n,) a loss cannot take; `which` says whose they are.

    Labels -1 and +1 are not taken for 0 and 1: whoever reads predictions would have to know of it.
    """
    if loss.target == "regression":
        fits, wanted = torch.isfinite(y), "finite numbers: correct it or take the sample out"
    elif loss.target == "binary":
        signs = bool(((y == -1) | (y == 1)).all())
        fits, wanted = (y == 0) | (y == 1), f"0 or 1: {'give (y + 1) / 2' if signs else 'use another loss or code'}"
    else:
        loss.scores(classes)  # refuses fewer than two
        if y.is_floating_point():
            kind = str(y.dtype).removeprefix("torch.")
            raise DataError(f"labels of {which} are of type {kind}, loss {loss.name!r} takes int64: give y.long()")
        fits, wanted = (y >= 0) & (y < classes), f"0 to {classes - 1}, the data has {classes} classes: correct it"
    if not bool(fits.all()):
        row = int(torch.nonzero(~fits)[0])
        raise DataError(f"the label of {which[:-1]} {row} is {y[row].item():g}, loss {loss.name!r} takes {wanted}")


def _single(scores: Tensor) -> Tensor:
    assert scores.shape[-1] == 1, f"one score per sample expected, got {tuple(scores.shape)}"
    return scores.squeeze(-1)
