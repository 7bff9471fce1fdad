"""Metrics of the same samples drawn again and again: `counts` (draws, n) says how often each sample is in each draw.

A sample that is drawn twice weighs twice, so one order of the scores serves all draws, and means are one product of
matrices. Metrics that are not here have no interval.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from crosshatch.task.losses import Loss, predicted_classes, unweighted
from crosshatch.task.measuring.ranks import Floats

_RANKED = ("auc", "gini", "pr_auc", "ks")
_CHUNK = 200_000  # numbers at a time: few enough for the cache


def draw_counts(n: int, draws: int, *, seed: int) -> Floats:
    """How often each of n samples is in each of so many draws of n, with replacement: (draws, n)."""
    return next(draw_in_turn(n, draws, seed=seed, at_once=draws))


def draw_in_turn(n: int, draws: int, *, seed: int, at_once: int) -> Iterator[Floats]:
    """The same, so many at once."""
    rng = np.random.default_rng(seed)
    for begun in range(0, draws, at_once):
        size = min(at_once, draws - begun)
        yield rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)


def resampled(
    names: Sequence[str], scores: Tensor, y: Tensor, loss: Loss, counts: Floats, threshold: float | None = None
) -> dict[str, Floats]:
    """Each metric that can be resampled, (draws,): of scores (n, c) against labels y; NaN where a draw has one class.

    `threshold` is the probability above which precision, recall and F1 of two classes take a sample for positive; left
    out, as the loss predicts.

    >>> from crosshatch.task.losses import Logistic
    >>> scores, y = torch.tensor([[2.0], [-1.0], [1.0]]), torch.tensor([1.0, 0.0, 0.0])
    >>> resampled(["accuracy", "auc"], scores, y, Logistic(), np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]]))
    {'accuracy': array([0.66666667, 1.        ]), 'auc': array([1., 1.])}
    """
    loss, scores = unweighted(loss), scores.detach().double()
    found = _means(scores, y, loss, counts, threshold)
    ranked = [name for name in names if name in _RANKED]
    if ranked and loss.target != "regression":
        per_class = [_ranked(one, positive, counts) for one, positive in _against_the_rest(scores, y, loss)]
        found |= {name: np.mean([each[name] for each in per_class], axis=0) for name in ranked if per_class}
    return {name: found[name] for name in names if name in found}


def _means(scores: Tensor, y: Tensor, loss: Loss, counts: Floats, threshold: float | None) -> dict[str, Floats]:
    labels = y if loss.target == "multiclass" else y.double()
    rows: dict[str, Tensor] = {"loss": loss.value(scores, labels)}
    if loss.target == "regression":
        residual = loss.predict(scores) - labels
        rows |= {"square": residual**2, "y": labels, "yy": labels**2}
    else:
        predicted = predicted_classes(loss, scores)
        right = predicted == y
        rows["accuracy"] = right.all(1) if loss.target == "multilabel" else right
    if loss.target == "binary":
        predicted = predicted if threshold is None else loss.predict(scores) > threshold
        rows |= {"brier": (loss.predict(scores) - labels) ** 2, "positive": y == 1, "taken": predicted == 1}
        rows["hits"] = (y == 1) & (predicted == 1)
    table = counts @ torch.stack([one.double() for one in rows.values()], dim=1).cpu().numpy()
    sums, total = dict(zip(rows, table.T, strict=True)), counts.sum(axis=1)
    found: dict[str, Floats] = {name: sums[name] / total for name in ("loss", "accuracy", "brier") if name in sums}
    with np.errstate(divide="ignore", invalid="ignore"):
        if loss.target == "regression":
            found["rmse"] = np.sqrt(sums["square"] / total)
            found["r2"] = 1 - sums["square"] / (sums["yy"] - sums["y"] ** 2 / total)
        if loss.target == "binary":
            found["precision"] = np.nan_to_num(sums["hits"] / sums["taken"])
            found["recall"] = np.nan_to_num(sums["hits"] / sums["positive"])
            found["f1"] = np.nan_to_num(2 * sums["hits"] / (sums["taken"] + sums["positive"]))
    return found


def _against_the_rest(scores: Tensor, y: Tensor, loss: Loss) -> list[tuple[Floats, Floats]]:
    """Scores (n,) and positives (n,) of each class or label that some samples have and some have not."""
    if loss.target == "binary":
        return [(scores[:, 0].cpu().numpy(), (y == 1).double().cpu().numpy())]
    values = (scores if loss.target == "multilabel" else loss.predict(scores)).cpu().numpy()
    if loss.target == "multiclass" and values.shape[1] == 2:
        return [(values[:, 1], (y == 1).double().cpu().numpy())]
    each = [(y[:, k] == 1 if loss.target == "multilabel" else y == k) for k in range(values.shape[1])]
    there = [(values[:, k], one.double().cpu().numpy()) for k, one in enumerate(each)]
    return [(one, positive) for one, positive in there if 0 < positive.sum() < len(positive)]


def _ranked(scores: Floats, positive: Floats, counts: Floats) -> dict[str, Floats]:
    order = np.argsort(-scores, kind="stable")
    ordered, positive = scores[order], positive[order]
    ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    ties = len(ends) < len(ordered)
    parts: dict[str, list[Floats]] = {name: [] for name in _RANKED}
    step = max(1, _CHUNK // len(scores))
    for start in range(0, len(counts), step):
        drawn = np.take(counts[start : start + step], order, axis=1)
        gained = drawn * positive
        hits, seen = np.cumsum(gained, axis=1), np.cumsum(drawn, axis=1)
        if ties:  # those of equal score count together
            hits, seen = hits[:, ends], seen[:, ends]
            gained = np.diff(hits, axis=1, prepend=0.0)
        false = seen - hits
        with np.errstate(divide="ignore", invalid="ignore"):
            p, n = hits[:, -1:], false[:, -1:]
            # false ones ahead of each hit, of equal score one half: what AUC loses
            false_before = np.sum(gained * false, axis=1) + np.sum(gained[:, 1:] * false[:, :-1], axis=1)
            parts["auc"].append(1 - false_before / (2 * p * n)[:, 0])
            parts["ks"].append(np.max(np.abs(hits / p - false / n), axis=1))
            np.maximum(seen, 1.0, out=seen)  # where nothing is drawn yet, nothing is gained either
            parts["pr_auc"].append(np.sum(gained * hits / seen, axis=1) / p[:, 0])
    found = {name: np.concatenate(many) for name, many in parts.items() if many}
    return {**found, "gini": 2 * found["auc"] - 1}
