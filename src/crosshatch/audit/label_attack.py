"""The attack on labels: what silos that get derivatives make of their signs, their sizes and their directions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.label_leak import derivatives_of, labels_from_derivatives, true_labels
from crosshatch.runs.directory import MESSAGES
from crosshatch.simulator.listening import Heard

NAME = "label by derivative"


def attack_labels(run: AuditedRun) -> tuple[AttackFindings, ...]:
    """One finding for everybody who gets derivatives, or one that says why there is none."""
    if not run.labels_held:
        return (AttackFindings(NAME, "labels", why="labels are shared: every silo has them"),)
    if not (run.path / MESSAGES).is_dir():
        return (
            AttackFindings(NAME, "labels", why="messages were not recorded: train with run.record_messages = true"),
        )
    by_sign = labels_from_derivatives(run)
    found = []
    for leak, heard in zip(by_sign, derivatives_of(run).values(), strict=True):
        figures = {"accuracy by sign": leak.accuracy, "R^2 of the first": leak.r2}
        if run.data.target == "binary":
            figures |= _by_size_and_direction(heard, true_labels(run))
        known = {name: value for name, value in figures.items() if value is not None}
        remark = f"{leak.derivatives:,} derivatives; {leak.remark}"
        found.append(AttackFindings(NAME, f"labels, by {', '.join(leak.receivers)}", known, remark=remark))
    if not found:
        encrypted = run.config.privacy.encrypts
        why = "they travel encrypted" if encrypted else "the algorithm does not ask for them"
        return (AttackFindings(NAME, "labels", why=f"no derivatives were sent in clear: {why}"),)
    return tuple(found)


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
