"""Metrics of scores (n, c) on held-out samples with labels y (n,), given the loss the model was trained with.

The loss says what the scores mean. Two classes are "binary": precision, recall, F1 and AUC speak of class 1. With more
classes they are macro averages: one class against the rest, every class counting the same; with several labels
(y (n, labels)) every label counts the same.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.errors import ModelError, TrainingError, meant
from crosshatch.own_parts import is_own
from crosshatch.task.losses import Loss, predicted_classes, unweighted
from crosshatch.task.measuring.ranks import Floats, Rank, average_precision, binary_auc, kolmogorov_smirnov
from crosshatch.task.own_metric import OwnMetric, find_metrics

Metric = Callable[[Tensor, Tensor, Loss], float]

_REGRESSION_ONLY = ("rmse", "r2")
_TWO_CLASSES_ONLY = ("ks", "brier")


def default_metrics(target: str) -> tuple[str, ...]:
    """What is reported when the config names no metrics; target is that of the data.

    >>> default_metrics("binary")
    ('loss', 'accuracy', 'auc')
    """
    of_target = {"multiclass": ("loss", "accuracy"), "regression": ("loss", "rmse", "r2")}
    return of_target.get(target, ("loss", "accuracy", "auc"))


def require_fitting(names: Sequence[str], target: str, classes: int) -> None:
    """Refuse unknown metrics and those which make no sense for the target, before anything is trained."""
    for name in names:
        if is_own(name):
            continue
        if name not in NAMES:
            hint = meant(name, NAMES)
            raise ModelError(
                f"unknown metric {name!r} in evaluate.metrics: {f'{hint}Choose' if hint else 'choose'} among "
                f"{', '.join(NAMES)}, or name your own as path/to/file.py:function"
            )
        fits = name in ("loss", "suboptimality") or (name in _REGRESSION_ONLY) == (target == "regression")
        if not fits:
            remedy = ", ".join(default_metrics(target))
            raise ModelError(f"metric {name!r} does not fit a {target} target: use {remedy} in evaluate.metrics")
        if name in _TWO_CLASSES_ONLY and target != "binary":
            raise ModelError(f"metric {name!r} is for two classes, the target is {target}: use pr_auc or loss instead")
        if name == "top5" and target == "multilabel":
            raise ModelError("metric 'top5' is for one label per sample, the data has several: use auc or f1 instead")
        if name == "top5" and classes < 6:
            raise ModelError(f"metric 'top5' needs at least 6 classes, the data has {classes}: use accuracy instead")


def evaluate(metrics: Sequence[str | OwnMetric], scores: Tensor, y: Tensor, loss: Loss) -> dict[str, float]:
    """Each metric of scores (n, c) against labels (n,), by name or a user's own; class weights are for training only.

    >>> from crosshatch.task.losses import Logistic
    >>> evaluate(["accuracy", "auc"], torch.tensor([[2.0], [-1.0], [1.0]]), torch.tensor([1.0, 0.0, 0.0]), Logistic())
    {'accuracy': 0.6666666666666666, 'auc': 1.0}
    """
    loss = unweighted(loss)
    assert scores.dim() == 2, f"scores are (n, c), got {tuple(scores.shape)}"
    shape = scores.shape if loss.target == "multilabel" else scores.shape[:1]
    assert y.shape == shape, f"{tuple(y.shape)} labels for {tuple(scores.shape)} scores"
    names = [metric for metric in metrics if isinstance(metric, str)]
    require_fitting(names, loss.target, scores.shape[1] if loss.target == "multiclass" else 2)
    if not len(y):
        raise ModelError("metrics need at least one sample, the test set is empty: give the data a test part")
    bad = int((~torch.isfinite(scores)).sum())
    if bad:
        raise TrainingError(
            f"{bad} of {scores.numel()} scores on the test set are NaN or infinite: lower algorithm.step_size"
        )
    if "suboptimality" in names:
        raise ModelError("metric 'suboptimality' is about the training objective, not about scores: ask the simulator")
    found = {}
    for metric in find_metrics(metrics):
        if isinstance(metric, OwnMetric):
            found[metric.name] = metric(scores, y, loss)
        else:
            found[metric] = _METRICS[metric](scores, y, loss)
    return found


def mean_loss(scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Mean of the per-sample losses, without the regulariser."""
    labels = y if loss.target == "multiclass" else y.double()
    return float(loss.value(scores.detach().double(), labels).mean())


def accuracy(scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Share of samples whose predicted class is the label; of equal scores the lower class is predicted.

    Of several labels all must be predicted right.
    """
    right = _predicted(scores, loss) == _labels(y)
    return float(np.mean(right.all(axis=1) if loss.target == "multilabel" else right))


def top5(scores: Tensor, y: Tensor, loss: Loss) -> float:  # noqa: ARG001 - one signature for all metrics
    """Share of samples whose label is among the five highest scores; of equal scores the lower class comes first."""
    values, labels = _numpy(scores), _labels(y)[:, None]
    own = np.take_along_axis(values, labels, axis=1)
    higher = (values > own) | ((values == own) & (np.arange(values.shape[1]) < labels))
    return float(np.mean(higher.sum(axis=1) < 5))


def gini(scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Twice the area under the ROC curve less one: 0 is a coin, 1 is perfect."""
    return 2 * _each_class("gini", binary_auc, scores, y, loss) - 1


def brier(scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Mean squared difference between the probability of class 1 and the label."""
    return float(np.mean((_numpy(loss.predict(scores.detach().double())) - _numpy(y)) ** 2))


def _each_class(name: str, rank: Rank, scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Of several classes the mean over those which occur among the labels.

    For several labels it is the mean over those that some of the samples have and some have not.
    """
    labels = _labels(y)
    if loss.target == "multilabel":
        return _mean_over_labels(name, rank, _numpy(scores), labels == 1)
    present = np.unique(labels)
    if len(present) < 2:
        raise ModelError(
            f"metric '{name}' needs two classes in the test labels, all {len(labels)} are class {present[0]}: "
            f"use a larger or shuffled test part, or leave {name} out of evaluate.metrics"
        )
    if loss.target == "binary":
        # The score orders samples as its sigmoid does, and never saturates.
        return rank(_numpy(scores)[:, 0], labels == 1)
    # Softmax matters here: one class against the rest compares probabilities across samples, not raw scores.
    probabilities = _numpy(loss.predict(scores.detach().double()))
    if scores.shape[1] == 2:
        return rank(probabilities[:, 1], labels == 1)
    return float(np.mean([rank(probabilities[:, k], labels == k) for k in present]))


def _decided(name: str, scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Precision, recall and F1 as scikit-learn has them; 0 where there is nothing to divide by."""
    from sklearn import metrics  # late, here and below: it takes a second

    average = "binary" if scores.shape[1] <= 2 and loss.target != "multilabel" else "macro"
    score = getattr(metrics, f"{name}_score")
    return float(score(_labels(y), _predicted(scores, loss), average=average, zero_division=0))


def rmse(scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Root of the mean squared residual, in the label's unit."""
    return float(np.sqrt(np.mean((_numpy(loss.predict(scores)) - _numpy(y)) ** 2)))


def r2(scores: Tensor, y: Tensor, loss: Loss) -> float:
    """Share of the labels' variance that is explained; 1 is perfect, 0 is predicting the mean."""
    if len(y) < 2:
        raise ModelError("metric 'r2' needs at least two test samples, there is one: use rmse instead")
    from sklearn.metrics import r2_score

    return float(r2_score(_numpy(y), _numpy(loss.predict(scores))))


_METRICS: dict[str, Metric] = {
    "loss": mean_loss,
    "accuracy": accuracy,
    "top5": top5,
    "auc": partial(_each_class, "auc", binary_auc),
    "pr_auc": partial(_each_class, "pr_auc", average_precision),
    "gini": gini,
    "ks": partial(_each_class, "ks", kolmogorov_smirnov),
    "brier": brier,
    **{name: partial(_decided, name) for name in ("f1", "precision", "recall")},
    "rmse": rmse,
    "r2": r2,
}
NAMES = (*_METRICS, "suboptimality")
"""What a config may ask for; the last is about the training objective, which the simulator knows."""


def _mean_over_labels(name: str, rank: Rank, scores: Floats, positive: npt.NDArray[np.bool_]) -> float:
    mixed = [k for k in range(scores.shape[1]) if 0 < positive[:, k].sum() < len(positive)]
    if not mixed:
        raise ModelError(
            f"metric '{name}' needs a label that some test samples have and some have not: use a larger or shuffled "
            f"test part, or leave {name} out of evaluate.metrics"
        )
    return float(np.mean([rank(scores[:, k], positive[:, k]) for k in mixed]))


def _predicted(scores: Tensor, loss: Loss) -> npt.NDArray[np.int64]:
    return predicted_classes(loss, scores.detach()).cpu().numpy()


def _labels(y: Tensor) -> npt.NDArray[np.int64]:
    return _numpy(y).astype(np.int64)


def _numpy(values: Tensor) -> Floats:
    array: npt.NDArray[Any] = values.detach().cpu().numpy()
    return array.astype(np.float64)
