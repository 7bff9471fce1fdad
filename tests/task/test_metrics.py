"""Metrics against scikit-learn and against examples small enough to do by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk
from torch import Tensor

from crosshatch.errors import ModelError, TrainingError
from crosshatch.task.directions import HIGHER_IS_BETTER
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.metrics import NAMES, default_metrics, evaluate, require_fitting

CLASSIFICATION = ["loss", "accuracy", "auc", "pr_auc", "gini", "f1", "precision", "recall"]


def column(*values: float) -> Tensor:
    return torch.tensor(values)[:, None]


def binary(n: int, seed: int, levels: int | None = None) -> tuple[Tensor, Tensor]:
    """Scores (n, 1), with ties when they are rounded to levels, and labels with both classes."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])
    scores = rng.normal(size=n) + y
    if levels is not None:
        scores = np.round(scores * levels) / levels
    return torch.tensor(scores)[:, None], torch.tensor(y, dtype=torch.float32)


def multiclass(n: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    scores = rng.normal(size=(n, classes))
    scores[np.arange(n), y] += 1
    return torch.tensor(scores), torch.tensor(y)


@settings(deadline=None, max_examples=60)
@given(n=st.integers(3, 60), seed=st.integers(0, 999), levels=st.sampled_from([None, 1, 4]))
def test_binary_metrics_equal_scikit_learn(n: int, seed: int, levels: int | None) -> None:
    scores, y = binary(n, seed, levels)
    found = evaluate([*CLASSIFICATION, "ks", "brier"], scores, y, Logistic())
    values, labels = scores[:, 0].numpy(), y.numpy()
    predicted = values > 0
    wrong, right, _ = sk.roc_curve(labels, values)
    expected = {
        "loss": sk.log_loss(labels, 1 / (1 + np.exp(-values))),
        "accuracy": sk.accuracy_score(labels, predicted),
        "auc": sk.roc_auc_score(labels, values),
        "pr_auc": sk.average_precision_score(labels, values),
        "gini": 2 * sk.roc_auc_score(labels, values) - 1,
        "ks": np.max(np.abs(right - wrong)),
        "brier": sk.brier_score_loss(labels, 1 / (1 + np.exp(-values))),
        "f1": sk.f1_score(labels, predicted, zero_division=0),
        "precision": sk.precision_score(labels, predicted, zero_division=0),
        "recall": sk.recall_score(labels, predicted, zero_division=0),
    }
    assert found == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(classes=st.integers(6, 9), extra=st.integers(0, 60), seed=st.integers(0, 999))
def test_multiclass_metrics_equal_scikit_learn(classes: int, extra: int, seed: int) -> None:
    scores, y = multiclass(classes + extra, classes, seed)
    found = evaluate([*CLASSIFICATION, "top5"], scores, y, CrossEntropy())
    values, labels = scores.numpy(), y.numpy()
    probabilities = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    predicted = values.argmax(axis=1)
    expected = {
        "loss": sk.log_loss(labels, probabilities, labels=range(classes)),
        "accuracy": sk.accuracy_score(labels, predicted),
        "auc": sk.roc_auc_score(labels, probabilities, multi_class="ovr", average="macro"),
        "pr_auc": np.mean([sk.average_precision_score(labels == k, probabilities[:, k]) for k in range(classes)]),
        "gini": 2 * sk.roc_auc_score(labels, probabilities, multi_class="ovr", average="macro") - 1,
        "f1": sk.f1_score(labels, predicted, average="macro", zero_division=0),
        "precision": sk.precision_score(labels, predicted, average="macro", zero_division=0),
        "recall": sk.recall_score(labels, predicted, average="macro", zero_division=0),
        "top5": sk.top_k_accuracy_score(labels, values, k=5, labels=range(classes)),
    }
    assert found == pytest.approx(expected, rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(n=st.integers(2, 60), seed=st.integers(0, 999))
def test_regression_metrics_equal_scikit_learn(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, scores = rng.normal(size=n), rng.normal(size=(n, 1))
    found = evaluate(["loss", "rmse", "r2"], torch.tensor(scores), torch.tensor(y), Squared())
    squared = sk.mean_squared_error(y, scores[:, 0])
    expected = {"loss": squared / 2, "rmse": math.sqrt(squared), "r2": sk.r2_score(y, scores[:, 0])}
    assert found == pytest.approx(expected, rel=1e-9)


def test_binary_by_hand() -> None:
    scores, y = column(3.0, 1.0, -1.0, 2.0, -2.0), torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0])
    # Predicted 1, 1, 0, 1, 0: two true positives, one false, one missed; 4 of the 6 pairs are in order.
    found = evaluate(["accuracy", "precision", "recall", "f1", "auc"], scores, y, Logistic())
    assert found == pytest.approx({"accuracy": 0.6, "precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "auc": 4 / 6})


def test_equal_scores_give_an_auc_of_one_half() -> None:
    assert evaluate(["auc"], column(1, 1, 1), torch.tensor([0.0, 1.0, 1.0]), Logistic()) == {"auc": 0.5}


def test_top5_by_hand() -> None:
    ranked = torch.tensor([[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]]).repeat(4, 1)
    assert evaluate(["top5"], ranked, torch.tensor([0, 3, 4, 5]), CrossEntropy()) == {"top5": 0.75}
    equal = torch.zeros(6, 6)  # lower classes come first, so only class 5 misses
    assert evaluate(["top5"], equal, torch.arange(6), CrossEntropy())["top5"] == pytest.approx(5 / 6)


def test_two_class_softmax_is_judged_like_a_binary_score() -> None:
    scores, y = binary(40, 5)
    both = torch.cat([torch.zeros_like(scores), scores], dim=1)
    names = ["loss", "accuracy", "auc", "f1", "precision", "recall"]
    found = evaluate(names, both, y.long(), CrossEntropy())
    assert found == pytest.approx(evaluate(names, scores, y, Logistic()), rel=1e-12)


def test_auc_averages_over_the_classes_that_occur() -> None:
    scores, y = multiclass(30, 3, 0)
    kept = y != 2
    probabilities = torch.softmax(scores, dim=1)[kept].numpy()
    by_class = [sk.roc_auc_score(y[kept].numpy() == k, probabilities[:, k]) for k in (0, 1)]
    found = evaluate(["auc"], scores[kept], y[kept], CrossEntropy())["auc"]
    assert found == pytest.approx(np.mean(by_class))


def test_single_precision_scores_are_averaged_in_double() -> None:
    y = torch.tensor([1e4, -1e4] * 5000) + 0.5
    found = evaluate(["rmse", "loss"], (y + 0.25)[:, None], y, Squared())
    assert found == pytest.approx({"rmse": 0.25, "loss": 0.03125}, rel=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), CrossEntropy()], ids=lambda loss: loss.name)
def test_auc_with_one_class_only_is_refused(loss: Loss) -> None:
    scores = torch.zeros(4, loss.scores(3))
    y = torch.ones(4) if isinstance(loss, Logistic) else torch.ones(4, dtype=torch.int64)
    with pytest.raises(ModelError, match="all 4 are class 1"):
        evaluate(["auc"], scores, y, loss)


@pytest.mark.parametrize(
    ("name", "target", "classes", "reason"),
    [
        ("auc", "regression", 0, "does not fit a regression target: use loss, rmse, r2"),
        ("accuracy", "regression", 0, "does not fit"),
        ("rmse", "binary", 2, "does not fit a binary target"),
        ("r2", "multiclass", 10, "does not fit"),
        ("top5", "multiclass", 5, "at least 6 classes, the data has 5"),
        ("top5", "binary", 2, "at least 6 classes"),
        ("lift", "binary", 2, "unknown metric 'lift'"),
        ("ks", "multiclass", 3, "is for two classes, the target is multiclass"),
        ("brier", "multilabel", 2, "is for two classes"),
    ],
)
def test_metrics_that_do_not_fit_are_refused(name: str, target: str, classes: int, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        require_fitting([name], target, classes)


def test_evaluate_refuses_them_too() -> None:
    with pytest.raises(ModelError, match="regression"):
        evaluate(["auc"], column(0, 1), torch.tensor([0.0, 1.0]), Squared())
    with pytest.raises(ModelError, match="top5"):
        evaluate(["top5"], torch.zeros(2, 5), torch.tensor([0, 1]), CrossEntropy())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_a_training_error(bad: float) -> None:
    with pytest.raises(TrainingError, match="1 of 2 scores"):
        evaluate(["loss"], column(bad, 0), torch.tensor([0.0, 1.0]), Logistic())


def test_too_few_samples() -> None:
    with pytest.raises(ModelError, match="empty"):
        evaluate(["loss"], torch.zeros(0, 1), torch.zeros(0), Squared())
    with pytest.raises(ModelError, match="at least two"):
        evaluate(["r2"], torch.zeros(1, 1), torch.zeros(1), Squared())


@pytest.mark.parametrize(("target", "classes"), [("binary", 2), ("multiclass", 3), ("regression", 0)])
def test_defaults_fit_their_target(target: str, classes: int) -> None:
    names = default_metrics(target)
    require_fitting(names, target, classes)
    assert names[0] == "loss"


def test_directions() -> None:
    lower = {name for name, higher in HIGHER_IS_BETTER.items() if not higher}
    on_rows = {"loss", "rmse", "brier"}
    assert lower == {"train_loss", "suboptimality"} | on_rows | {f"validation_{name}" for name in on_rows}


def test_whatever_is_measured_has_a_direction() -> None:
    on_validation_rows = {f"validation_{name}" for name in NAMES if name != "suboptimality"}
    assert {*NAMES, "train_loss", *on_validation_rows} == set(HIGHER_IS_BETTER)


def test_suboptimality_is_not_one_of_scores() -> None:
    require_fitting(["suboptimality"], "binary", 2)
    require_fitting(["suboptimality"], "regression", 0)
    with pytest.raises(ModelError, match="ask the simulator"):
        evaluate(["suboptimality"], column(0, 1), torch.tensor([0.0, 1.0]), Squared())
