"""Targets: direction by metric, and a readable refusal of everything else."""

from __future__ import annotations

import pytest

from crosshatch.errors import ConfigError
from crosshatch.report.measures import HIGHER_IS_BETTER, Target, main_metric, parse_target


@pytest.mark.parametrize("metric", ["auc", "accuracy", "top5", "f1", "precision", "recall", "r2"])
def test_higher_is_better(metric: str) -> None:
    assert parse_target(f"{metric}=0.5") == Target(metric, 0.5, higher=True)


@pytest.mark.parametrize("metric", ["loss", "train_loss", "rmse"])
def test_lower_is_better(metric: str) -> None:
    assert parse_target(f" {metric} = 4e-1 ") == Target(metric, 0.4, higher=False)


@pytest.mark.parametrize("label", ["auc>=0.75", "loss<=0.4", "lift>=2", "auc<=0.1"])
def test_a_sign_decides_and_labels_read_back(label: str) -> None:
    assert parse_target(label).label == label


@pytest.mark.parametrize("text", ["", "auc", "auc=", "=0.5", "auc=high", "auc=nan", "auc=inf", "auc=0.7=0.8", "0.75"])
def test_malformed_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r"for example auc=0\.75") as caught:
        parse_target(text)
    assert "\n" not in str(caught.value)


def test_unknown_direction_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match="write 'lift>=2' or 'lift<=2'"):
        parse_target("lift=2")


def test_directions_are_those_of_the_task() -> None:
    # written twice, because the task's metrics import torch and a report must not
    from crosshatch.task import metrics

    assert {**metrics.HIGHER_IS_BETTER, "train_loss": False} == HIGHER_IS_BETTER


def test_nan_reaches_nothing() -> None:
    assert not parse_target("auc=0").is_reached_by(float("nan"))
    assert not parse_target("loss=9").is_reached_by(float("nan"))


def test_main_metric() -> None:
    assert main_metric(("train_loss", "accuracy", "auc")) == "auc"
    assert main_metric(("lift", "gain")) == "lift"
