"""Labels read off the derivatives that their holder sends back, one per sample: no theorem is about these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.other_data import Matrix
from crosshatch.simulator.listening import Heard


@dataclass(frozen=True)
class Leak:
    """What receivers of derivatives learn of the labels.

    `accuracy`: of the labels read off the signs of all recorded derivatives. For real labels `r2`: that of the first
    derivatives, taken with the other sign as the labels.
    """

    receivers: tuple[str, ...]
    derivatives: int
    accuracy: float | None = None
    r2: float | None = None
    remark: str = ""


def derivatives_of(run: AuditedRun) -> dict[tuple[int, ...], list[Heard]]:
    """The recorded messages with derivatives, by who gets them; each silo is in one only."""
    found: dict[tuple[int, ...], list[Heard]] = {}
    for heard in run.heard:
        if heard.exchange == "derivatives":
            found.setdefault(heard.receivers, []).append(heard)
    return found


def true_labels(run: AuditedRun) -> Tensor:
    """(n,), or (n, labels) where there are several; without the weights of samples."""
    y = run.data.y_train
    if not run.data.weighted:
        return y
    return y[:, 0] if y.shape[1] == 2 else y[:, :-1]


def labels_from_derivatives(run: AuditedRun) -> tuple[Leak, ...]:
    """What the receivers of derivatives learn; empty where nobody holds the labels alone."""
    return tuple(
        _leak(run, tuple(run.task.names[j] for j in receivers), heard)
        for receivers, heard in derivatives_of(run).items()
    )


def _leak(run: AuditedRun, names: tuple[str, ...], heard: Sequence[Heard]) -> Leak:
    count = sum(len(one.ids) for one in heard)
    y = true_labels(run)
    if run.task.head is not None:
        return Leak(names, count, remark="behind a head signs mean nothing by themselves")
    if run.data.target == "regression":
        first = heard[0]
        truth = y[torch.from_numpy(first.ids)].double()
        guess = -first.values[:, 0].double()
        spread = float((truth - truth.mean()).square().sum())
        r2 = 1 - float((truth - guess).square().sum()) / spread if spread else float("nan")
        return Leak(names, count, r2=r2, remark="first round: label minus score")
    right = total = 0
    for one in heard:
        guess, truth = read_labels(one.values, run.data.target), y[torch.from_numpy(one.ids)]
        right += int((guess == truth.to(guess)).sum())
        total += truth.numel()
    return Leak(names, count, accuracy=right / total, remark="by the sign of each derivative")


def chance(y: Matrix, target: str) -> dict[str, float]:
    """What somebody gets who says the most frequent class of all; nothing where labels are no classes."""
    if target not in ("binary", "multiclass"):
        return {}
    found = {"AUC, chance": 0.5} if target == "binary" else {}
    return found | {"accuracy, chance": float(np.bincount(y.astype(int)).max() / len(y))}


def figures_of_two(y: Matrix, found: Matrix) -> dict[str, float]:
    """Of what is above 0, and large, where labels are 1."""
    auc = {"AUC": float(roc_auc_score(y, found))} if len(np.unique(y)) == 2 else {}
    return auc | {"accuracy": float(((found > 0) == y).mean())}


def read_labels(derivatives: Tensor, target: str) -> Tensor:
    """The labels that derivatives (n, c) tell: a negative number is that of a label that is true."""
    if target == "multiclass":
        return derivatives.argmin(-1)
    negative = (derivatives < 0).to(derivatives)
    return negative if target == "multilabel" else negative[:, 0]
