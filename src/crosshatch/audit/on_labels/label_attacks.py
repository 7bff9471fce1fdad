"""The attacks on labels: by derivatives where they travel in clear, by gradients where they travel encrypted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.on_labels.clusters import cluster, named, named_by_known
from crosshatch.audit.on_labels.label_leak import chance, derivatives_of, labels_from_derivatives, true_labels
from crosshatch.audit.on_labels.sums_attacks import attack_sums
from crosshatch.simulator.listening import Heard

BY_DERIVATIVE = "labels by derivatives"
BY_CLUSTERS = "labels by clusters of directions"
_BY_KNOWN = "accuracy by one known label per class"
_LOWERS = 'privacy.encryption = "paillier"'


def attack_labels(run: AuditedRun) -> Iterator[AttackFindings]:
    """Findings by everybody who gets derivatives or gradients, or one that says why there are none."""
    if not run.labels_held:
        yield AttackFindings(BY_DERIVATIVE, "labels", why="labels are shared: every silo has them")
        return
    readers = sorted({heard.receivers[0] for heard in run.heard if heard.exchange == "gradients"})
    for silo in readers:
        yield from attack_sums(run, silo)
    leaks = labels_from_derivatives(run)
    for leak, heard in zip(leaks, derivatives_of(run).values(), strict=True):
        target = f"labels, by {', '.join(leak.receivers)}"
        figures = {"accuracy by sign": leak.accuracy, "R^2 of the first": leak.r2}
        if run.data.target == "binary":
            figures |= _by_size_and_direction(heard, true_labels(run))
        known = {name: value for name, value in figures.items() if value is not None}
        remark = f"{leak.derivatives:,} derivatives; {leak.remark}"
        if known:
            knows = "the derivatives it was sent; for the cosine the label of one positive sample"
            yield AttackFindings(BY_DERIVATIVE, target, known, _chance(run), knows, _LOWERS, remark=remark)
        if run.task.head is not None and run.data.target in ("binary", "multiclass"):
            yield _by_clusters(run, heard, target)
    if not readers and not leaks:
        yield AttackFindings(BY_DERIVATIVE, "labels", why="the algorithm sends no derivatives")


def _chance(run: AuditedRun) -> dict[str, float]:
    return chance(true_labels(run).numpy(), run.data.target)


def _by_clusters(run: AuditedRun, heard: Sequence[Heard], target: str) -> AttackFindings:
    y = true_labels(run).long().numpy()
    classes = int(y.max()) + 1
    seen, likely = cluster(heard, len(y), classes, seed=run.config.run.seed)
    if not len(seen):
        return AttackFindings(
            BY_CLUSTERS, target, why=f"not tried: no message tells of more than {2 * classes} samples"
        )
    figures = {
        "accuracy up to the names of the classes": named(likely, y[seen], classes),
        _BY_KNOWN: named_by_known(likely, y[seen], classes),
    }
    early, likely = cluster(heard[:1], len(y), classes, seed=run.config.run.seed)
    of_first = named_by_known(likely, y[early], classes) if len(early) else 0.0
    if of_first > figures[_BY_KNOWN]:
        figures[f"{_BY_KNOWN}, of the first round's samples"] = of_first
    knows = "the derivatives it was sent and how many classes there are"
    remark = f"{len(seen):,} samples in {len(heard):,} messages"
    lowers = f'model.fusion = "sum" with {_LOWERS}'
    return AttackFindings(BY_CLUSTERS, target, figures, _chance(run), knows, lowers, remark=remark)


def _by_size_and_direction(messages: Sequence[Heard], y: Tensor) -> dict[str, float | None]:
    """AUC by the norm (a rarer label has the larger derivatives) and by the cosine to one known positive sample's.

    Both are means over the messages that have both labels.
    """
    rare = 1.0 if float(y.mean()) < 0.5 else 0.0
    by_norm, by_cosine = [], []
    for one in messages:
        truth = y[torch.from_numpy(one.ids)].numpy()
        rows = one.values.double().numpy()
        sizes = np.linalg.norm(rows, axis=1)
        if len(np.unique(truth)) < 2:
            continue
        by_norm.append(float(roc_auc_score(truth == rare, sizes)))
        known = int(np.flatnonzero(truth == 1)[0])
        rest = np.arange(len(truth)) != known
        if len(np.unique(truth[rest])) == 2 and sizes[known]:
            cosine = rows[rest] @ rows[known] / np.maximum(sizes[rest] * sizes[known], np.finfo(float).tiny)
            by_cosine.append(float(roc_auc_score(truth[rest] == 1, cosine)))
    return {
        "AUC by norm": mean(by_norm) if by_norm else None,
        "AUC by cosine to a known one": mean(by_cosine) if by_cosine else None,
    }
