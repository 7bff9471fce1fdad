"""Thresholds, confusion and reliability against scikit-learn; resampled metrics against samples that are repeated."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from crosshatch.task.losses import CrossEntropy, Logistic, Loss, MultiLogistic, Squared
from crosshatch.task.measuring.decisions import decide
from crosshatch.task.measuring.resampled import draw_counts, draw_in_turn, resampled
from crosshatch.task.metrics import evaluate

BINARY = ["loss", "accuracy", "auc", "gini", "pr_auc", "ks", "brier", "f1", "precision", "recall"]


def drawn(n: int, seed: int, digits: int = 9) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])
    return np.round(1 / (1 + np.exp(-rng.normal(size=n) - y)), digits), y


@pytest.mark.parametrize("seed", range(5))
def test_decisions_equal_scikit_learn(seed: int) -> None:
    probabilities, y = drawn(300, seed)
    found = decide(probabilities, y, drawn(80, seed + 100))
    predicted = probabilities > found.threshold
    expected = [found.true_negatives, found.false_positives, found.false_negatives, found.true_positives]
    assert sk.confusion_matrix(y, predicted).ravel().tolist() == expected
    assert found.precision == pytest.approx(sk.precision_score(y, predicted), rel=1e-12)
    assert found.recall == pytest.approx(sk.recall_score(y, predicted), rel=1e-12)
    assert found.f1 == pytest.approx(sk.f1_score(y, predicted), rel=1e-12)
    share, mean = calibration_curve(y, probabilities, n_bins=10)
    assert [one.positive for one in found.reliability] == pytest.approx(share.tolist(), rel=1e-12)
    assert [one.probability for one in found.reliability] == pytest.approx(mean.tolist(), rel=1e-12)
    assert sum(one.samples for one in found.reliability) == 300


@pytest.mark.parametrize("digits", [9, 1])
@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_does_better_on_the_validation_rows(seed: int, digits: int) -> None:
    probabilities, y = drawn(80, seed, digits)
    threshold = decide(probabilities, y, (probabilities, y)).threshold
    all_of_them = [sk.f1_score(y, probabilities > one) for one in (-1.0, *probabilities)]
    assert sk.f1_score(y, probabilities > threshold) == pytest.approx(max(all_of_them), rel=1e-12)


def test_without_validation_rows_of_both_classes_it_is_one_half() -> None:
    probabilities, y = drawn(50, 0)
    assert decide(probabilities, y).threshold == 0.5
    one_class = decide(probabilities, y, (probabilities, np.ones_like(y)))
    assert (one_class.threshold, one_class.on_validation) == (0.5, False)


def task(kind: str, n: int) -> tuple[torch.Tensor, torch.Tensor, Loss, list[str]]:
    rng = np.random.default_rng(3)
    scores = torch.tensor(np.round(rng.normal(size=(n, 3)), 1))  # with ties
    if kind == "binary":
        return scores[:, :1], torch.tensor(rng.integers(0, 2, n), dtype=torch.float32), Logistic(), BINARY
    if kind == "multiclass":
        return scores, torch.tensor(rng.integers(0, 3, n)), CrossEntropy(), ["loss", "accuracy", "auc", "pr_auc"]
    if kind == "multilabel":
        labels = torch.tensor(rng.integers(0, 2, (n, 3)), dtype=torch.float32)
        return scores, labels, MultiLogistic(), ["loss", "accuracy", "auc"]
    return scores[:, :1], torch.tensor(rng.normal(size=n)), Squared(), ["loss", "rmse", "r2"]


@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel", "regression"])
def test_a_draw_is_the_metric_of_its_samples(kind: str) -> None:
    scores, y, loss, names = task(kind, 60)
    counts = draw_counts(60, 20, seed=1)
    found = resampled(names, scores, y, loss, counts)
    assert sorted(found) == sorted(names)
    for draw in range(20):
        rows = torch.tensor(np.repeat(np.arange(60), counts[draw].astype(int)))
        expected = evaluate(names, scores[rows], y[rows], loss)
        assert {name: values[draw] for name, values in found.items()} == pytest.approx(expected, rel=1e-9)


def test_a_threshold_decides_what_is_taken_for_positive() -> None:
    scores, y, loss, _ = task("binary", 60)
    found = resampled(["f1", "recall"], scores, y, loss, np.ones((1, 60)), threshold=0.3)
    predicted = torch.sigmoid(scores[:, 0]).numpy() > 0.3
    assert found["f1"][0] == pytest.approx(sk.f1_score(y.numpy(), predicted))
    assert found["recall"][0] == pytest.approx(sk.recall_score(y.numpy(), predicted))


def test_draws_are_of_all_samples_and_repeat() -> None:
    counts = draw_counts(50, 10, seed=4)
    assert (counts.sum(axis=1) == 50).all()
    assert (counts == draw_counts(50, 10, seed=4)).all()
    assert (counts == np.concatenate(list(draw_in_turn(50, 10, seed=4, at_once=4)))).all()
