"""Labels read off the derivatives that their holder sends back, one per sample: no theorem is about these."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from sklearn.metrics import r2_score, roc_auc_score
from torch import Tensor

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.listening import Heard

BY_DERIVATIVE = "labels by derivatives"
LOWERS = 'privacy.encryption = "paillier"'


def derivatives_of(run: AuditedRun) -> dict[str, list[Heard]]:
    """The recorded messages with derivatives, by the attack's target: who gets them; each silo is in one only."""
    found: dict[str, list[Heard]] = {}
    for heard in run.heard:
        if heard.exchange == "derivatives":
            names = ", ".join(run.task.names[j] for j in heard.receivers)
            found.setdefault(f"labels, by {names}", []).append(heard)
    return found


def true_labels(run: AuditedRun) -> Tensor:
    """(n,), or (n, labels) where there are several; without the weights of samples."""
    y = run.data.y_train
    if not run.data.weighted:
        return y
    return y[:, 0] if y.shape[1] == 2 else y[:, :-1]


def labels_from_derivatives(run: AuditedRun) -> Iterator[AttackFindings]:
    """What the receivers of derivatives learn by these alone; nothing where nobody holds the labels by himself."""
    for target, heard in derivatives_of(run).items():
        y = true_labels(run)
        figures, how = {}, "behind a head signs mean nothing by themselves"
        if run.task.head is None and run.data.target == "regression":
            figures, how = _by_the_first(heard[0], y), "first round: label minus score"
        elif run.task.head is None:
            figures, how = _by_sign(heard, y, run.data.target), "by the sign of each derivative"
        if run.data.target == "binary":
            figures |= _by_size_and_direction(heard, y)
        if figures:
            knows = "the derivatives it was sent; for the cosine the label of one positive sample"
            remark = f"{sum(len(one.ids) for one in heard):,} derivatives; {how}"
            beside = chance_and_columns(run, heard[0].receivers, np.unique(np.concatenate([one.ids for one in heard])))
            yield AttackFindings(BY_DERIVATIVE, target, figures, beside, knows, LOWERS, remark=remark)


def _by_the_first(first: Heard, y: Tensor) -> dict[str, float]:
    """Real labels: the first derivatives, from scores of zero, are labels with the other sign."""
    truth = y[torch.from_numpy(first.ids)].double().numpy()
    return {"R^2 of the first": float(r2_score(truth, -first.values[:, 0].double().numpy()))}


def _by_sign(messages: Sequence[Heard], y: Tensor, target: str) -> dict[str, float]:
    truths = [y[torch.from_numpy(one.ids)] for one in messages]
    pairs = zip(messages, truths, strict=True)
    right = sum(int((read_labels(one.values, target) == truth).sum()) for one, truth in pairs)
    return {"accuracy by sign": right / sum(truth.numel() for truth in truths)}


def _by_size_and_direction(messages: Sequence[Heard], y: Tensor) -> dict[str, float]:
    """AUC by the norm (a rarer label has the larger derivatives) and by the cosine to one known positive sample's.

    Both are means over the messages that have both labels.
    """
    rare = 1.0 if float(y.mean()) < 0.5 else 0.0
    found: dict[str, list[float]] = {"AUC by norm": [], "AUC by cosine to a known one": []}
    by_norm, by_cosine = found.values()
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
    return {name: float(np.mean(values)) for name, values in found.items() if values}


def chance(y: Matrix, target: str) -> dict[str, float]:
    """What somebody gets who says the most frequent class of all, or the mean where labels are no classes."""
    if target == "regression":
        return {"R^2, chance": 0.0}
    if target == "multilabel":
        return {"accuracy, chance": float(np.maximum(y.mean(axis=0), 1 - y.mean(axis=0)).mean())}
    found = {"AUC, chance": 0.5} if target == "binary" else {}
    return found | {"accuracy, chance": float(np.bincount(y.astype(int)).max() / len(y))}


def chance_and_columns(run: AuditedRun, silos: Sequence[int], here: Ids) -> dict[str, float]:
    """Of the samples `here`: chance, and the least-squares fit of the columns of these silos to the true labels."""
    features = (run.features(silo).double().numpy()[here] for silo in silos)
    x, wanted = np.column_stack([*features, np.ones(len(here))]), as_numbers(run)
    found = np.zeros(wanted.shape)
    found[here] = x @ np.linalg.lstsq(x, wanted[here], rcond=None)[0]
    return chance(true_labels(run).numpy()[here], run.data.target) | columns_alone(run, found, here)


def columns_alone(run: AuditedRun, fitted: Matrix, here: Ids, after: str = "") -> dict[str, float]:
    """What a fit (n, c) to the true labels tells of the samples `here`."""
    shift = 0.0 if run.data.target == "regression" else 0.5
    figures = figures_of(run, shift - fitted, here)
    return {f"{name}{after}, columns alone": value for name, value in figures.items()}


def as_numbers(run: AuditedRun) -> Matrix:
    """The true labels (n, c), of several classes one number each."""
    y = true_labels(run).double().numpy()
    return np.eye(int(y.max()) + 1)[y.astype(int)] if run.data.target == "multiclass" else y.reshape(len(y), -1)


def figures_of(run: AuditedRun, found: Matrix, here: Ids) -> dict[str, float]:
    """How near derivatives (n, c) at scores of zero come to the labels of the samples `here`."""
    target = run.data.target
    y, guess = true_labels(run).numpy()[here], found[here]
    if target == "regression":
        return {"R^2": float(r2_score(y, -guess[:, 0]))}
    if target == "binary":
        return figures_of_two(y, -guess[:, 0])
    return {"accuracy": float((read_labels(torch.from_numpy(guess), target).numpy() == y).mean())}


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
