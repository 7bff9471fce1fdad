"""Losses in which samples count differently, by their class or one by one, around the losses themselves."""

from abc import ABC
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import torch
from torch import Tensor

from crosshatch.errors import ModelError
from crosshatch.task.losses.sample_losses import CrossEntropy, Logistic, SampleLoss
from crosshatch.task.model_settings import require_class_weights


class _Weighted(ABC):
    """What the loss around which the weights are says of itself."""

    loss: SampleLoss

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def target(self) -> str:
        return self.loss.target

    def predict(self, scores: Tensor) -> Tensor:
        return self.loss.predict(scores)


@dataclass(frozen=True)
class ClassWeighted(_Weighted):
    """Another loss, each sample's times the weight of its class; `weights[k]` is that of class k.

    Means over samples stay means: they are divided by the number of samples, not by the sum of the weights.

    >>> ClassWeighted(Logistic(), (1.0, 4.0)).derivative(torch.tensor([[0.0]]), torch.tensor([1.0]))
    tensor([[-2.]])
    """

    loss: Logistic | CrossEntropy
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        require_class_weights(self.weights)

    @property
    def curvature(self) -> float:
        return self.loss.curvature * max(self.weights)

    def scores(self, classes: int) -> int:
        if len(self.weights) != classes:
            raise ModelError(
                f"model.class_weights has {len(self.weights)} weights, the data has {classes} classes: give one per "
                "class, in the order of the sorted labels, or 'balanced'"
            )
        return self.loss.scores(classes)

    def _of(self, classes: Tensor, like: Tensor) -> Tensor:
        return _table(self.weights, like.dtype, like.device)[classes]

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        return self.loss.value(scores, y) * self._of(y.long(), scores)

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """That of the loss itself times the class's weight, (..., n, c)."""
        return self.loss.derivative(scores, y).mul_(self._of(y.long(), scores).unsqueeze(-1))

    def continued(self, derivative: Tensor, moved: Tensor) -> Tensor:
        """The derivative at scores that have moved so far: it tells the class, and everybody knows the weights."""
        binary = isinstance(self.loss, Logistic)
        label = (derivative < 0).long() if binary else derivative.argmin(-1, keepdim=True)
        weight = self._of(label, derivative)
        return self.loss.continued(derivative / weight, moved).mul_(weight)


@dataclass(frozen=True)
class SampleWeighted(_Weighted):
    """Another loss, each sample's times a weight of its own, which stands beside its label: y is (..., n, labels + 1).

    No weight is above `largest`. Means over samples stay means; weights whose mean is one keep the scale of the loss.

    >>> y = torch.tensor([[1.0, 3.0]])  # label 1, weight 3
    >>> SampleWeighted(Logistic(), largest=3.0).derivative(torch.tensor([[0.0]]), y)
    tensor([[-1.5000]])
    """

    loss: SampleLoss
    largest: float

    @property
    def curvature(self) -> float:
        return self.loss.curvature * self.largest

    def scores(self, classes: int) -> int:
        return self.loss.scores(classes)

    def labels(self, y: Tensor) -> Tensor:
        """The labels without their weights, as the loss itself takes them."""
        if self.target == "multilabel":
            return y[..., :-1]
        return y[..., 0].long() if self.target == "multiclass" else y[..., 0]

    def value(self, scores: Tensor, y: Tensor) -> Tensor:
        return self.loss.value(scores, self.labels(y)) * y[..., -1]

    def derivative(self, scores: Tensor, y: Tensor) -> Tensor:
        """That of the loss itself times the sample's weight, (..., n, c)."""
        return self.loss.derivative(scores, self.labels(y)).mul_(y[..., -1:])


@cache
def _table(weights: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(weights, dtype=dtype, device=device)


Loss: TypeAlias = SampleLoss | SampleWeighted


def unweighted(loss: Loss) -> SampleLoss:
    """The loss itself where classes or samples have weights: metrics count every sample the same."""
    if isinstance(loss, SampleWeighted):
        loss = loss.loss
    return loss.loss if isinstance(loss, ClassWeighted) else loss


def predicted_classes(loss: Loss, scores: Tensor) -> Tensor:
    """Classes (n,) for scores (n, c); a binary score predicts class 1 from probability one half upwards, exclusively.

    Of several labels each is predicted in the same way, (n, c). Of several equal scores the lower class is predicted.
    """
    if loss.target == "multilabel":
        return (scores > 0).long()
    return (scores[:, 0] > 0).long() if loss.target == "binary" else scores.argmax(dim=1)
