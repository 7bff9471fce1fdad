"""Losses with their derivatives by hand: one value per sample, any leading dimensions (clients, buckets) in front.

Shapes: scores (..., n, c), labels y (..., n) or, where several may be true, (..., n, c), values (..., n), derivatives
(..., n, c). The derivative is that of each sample's own loss with respect to its own scores; whoever averages over a
batch divides by its size.
"""

import math
from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from crosshatch.errors import ModelError


class _OfOneScore(ABC):
    """What losses of one real score per sample (c = 1) answer alike, but for those that say otherwise."""

    curvature: ClassVar[float]

    def scores(self, classes: int) -> int:  # noqa: ARG002 - the same question to every loss
        return 1

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far since this one was taken, where it is linear in them."""
        return derivative + self.curvature * moved

    def predict(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(_single(scores))


@dataclass(frozen=True)
class Squared(_OfOneScore):
    """Half the squared residual, `(score - y)^2 / 2`, for one real score per sample (c = 1).

    >>> Squared().value(torch.tensor([[3.0]]), torch.tensor([1.0]))
    tensor([2.])
    """

    name: ClassVar[str] = "squared"
    curvature: ClassVar[float] = 1.0  # no second derivative in the scores is above
    target: ClassVar[str] = "regression"

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        return 0.5 * (_single(scores) - y).square()

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`score - y`, (..., n, 1)."""
        return scores - y.unsqueeze(-1)

    def predict(self, scores: Tensor) -> Tensor:
        return _single(scores)


@dataclass(frozen=True)
class Logistic(_OfOneScore):
    """Negative log-likelihood of labels in {0, 1} under `sigmoid(score)`, one score per sample (c = 1).

    With the margin m = (2y - 1) score the loss is `log(1 + exp(-m))`, without cancellation at either end.

    >>> Logistic().derivative(torch.tensor([[0.0]]), torch.tensor([1.0]))
    tensor([[-0.5000]])
    """

    name: ClassVar[str] = "logistic"
    curvature: ClassVar[float] = 0.25  # no second derivative in the scores is above
    target: ClassVar[str] = "binary"

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        return -functional.logsigmoid(_single(scores) * (2 * y - 1))

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`sigmoid(score) - y`, (..., n, 1), by the margin: it fades at both ends and is never rounded to zero."""
        return _by_margin(scores, y.unsqueeze(-1))

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


@dataclass(frozen=True)
class TaylorLogistic(_OfOneScore):
    """The second-order Taylor form of `Logistic` at score 0: `log 2 - m / 2 + m^2 / 8` with m = (2y - 1) score.

    Its derivative is linear in the score, which is all that additively homomorphic encryption can compute.

    >>> TaylorLogistic().derivative(torch.tensor([[2.0]]), torch.tensor([1.0]))
    tensor([[0.]])
    """

    name: ClassVar[str] = "taylor_logistic"
    curvature: ClassVar[float] = 0.25  # no second derivative in the scores is above
    target: ClassVar[str] = "binary"

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        margin = _single(scores) * (2 * y - 1)
        return math.log(2) - margin / 2 + margin.square() / 8

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`score / 4 - (2y - 1) / 2`, (..., n, 1)."""
        return scores / 4 - (y - 0.5).unsqueeze(-1)


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
        if classes < 2:
            raise ModelError(f"loss 'cross_entropy' needs at least 2 classes, the data has {classes}: use another loss")
        return classes

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        return -torch.log_softmax(scores, dim=-1).gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`softmax(scores) - onehot(y)`, (..., n, c)."""
        return _in_balance(torch.softmax(scores, dim=-1), y.unsqueeze(-1))

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far since this one was taken.

        Its only negative number is the label's; with 1 added there it is the probabilities, whose logarithms are the
        scores up to a constant. A sample without a negative number does not tell, and stays; see `Logistic`.
        """
        label = derivative.argmin(-1, keepdim=True)
        lowest = torch.finfo(derivative.dtype).tiny
        chances = derivative.scatter_add(-1, label, torch.ones_like(label, dtype=derivative.dtype))
        scores = chances.clamp(min=lowest).log()
        change = _in_balance(torch.softmax(scores + moved, dim=-1) - torch.softmax(scores, dim=-1), label)
        tells = derivative.gather(-1, label) < 0
        return torch.where(tells, derivative + change, derivative)

    def predict(self, scores: Tensor) -> Tensor:
        return torch.softmax(scores, dim=-1)


@dataclass(frozen=True)
class MultiLogistic:
    """The mean of logistic losses, one for each of several labels in {0, 1}: y is (..., n, c), as the scores are.

    How many `labels` there are is only asked for by whoever wants the curvature: each counts for a part of the mean.

    >>> MultiLogistic().derivative(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor([[-0.2500,  0.2500]])
    """

    name: ClassVar[str] = "multi_logistic"
    target: ClassVar[str] = "multilabel"
    labels: int = 1

    @property
    def curvature(self) -> float:
        return Logistic.curvature / self.labels

    def scores(self, classes: int) -> int:
        return classes

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        return -functional.logsigmoid(scores * (2 * y - 1)).mean(-1)

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """`(sigmoid(score) - y) / c` for each label, (..., n, c)."""
        return _by_margin(scores, y).div_(scores.shape[-1])

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far, label by label; see `Logistic`."""
        labels = derivative.shape[-1]
        return Logistic().continued(derivative * labels, moved).div_(labels)

    def predict(self, scores: Tensor) -> Tensor:
        return torch.sigmoid(scores)


class SampleLoss(Protocol):
    """What every loss has, a user's own included; in that `continued` and `curvature` may be missing.

    >>> loss: SampleLoss = Logistic()
    >>> loss.target, loss.scores(2)
    ('binary', 1)

    Without the first, methods that let derivatives go on are refused; without the second, those that ask for a bound of
    the second derivatives in the scores.
    """

    @property
    def name(self) -> str: ...

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


LOSSES: dict[str, SampleLoss] = {  # a new one is named in `model_settings.LOSS_NAMES` as well
    "squared": Squared(),
    "logistic": Logistic(),
    "cross_entropy": CrossEntropy(),
    "multi_logistic": MultiLogistic(),
    "taylor_logistic": TaylorLogistic(),  # behind the loss that "auto" takes for the same labels
}


def _by_margin(scores: Tensor, y: Tensor) -> Tensor:
    """`sigmoid(score) - y` for labels in {0, 1}, without the difference, which is zero where a label 1 is certain."""
    sign = torch.rsub(y, 1, alpha=2)
    return torch.sigmoid(sign * scores).mul_(sign)


def _in_balance(chances: Tensor, label: Tensor) -> Tensor:
    """In place, with minus the sum of the other classes' numbers in the label's place: exact where that is tiny."""
    chances.scatter_(-1, label, 0.0)
    return chances.scatter_(-1, label, -chances.sum(-1, keepdim=True))


def _single(scores: Tensor) -> Tensor:
    assert scores.shape[-1] == 1, f"one score per sample expected, got {tuple(scores.shape)}"
    return scores.squeeze(-1)
