"""Targets: direction by metric, and a readable refusal of everything else."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from crosshatch.errors import ConfigError
from crosshatch.report.measures import Target, TargetsAhead, best_row, first_reaching, main_metric, parse_target
from crosshatch.seeds import generator
from tests.architecture.modules import modules


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


@pytest.mark.parametrize("text", ["auc=1.5", "accuracy>=-0.1", "validation_f1=2", "r2=1.01", "rmse=-1", "recall<=1.1"])
def test_a_value_that_no_run_can_have_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is at (most|least) -?[01]: choose a value that can be reached"):
        parse_target(text)
    assert parse_target("r2=-3").value == -3


def test_directions_are_written_once_and_need_no_torch() -> None:
    homes = [
        module.name
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.Assign) and "HIGHER_IS_BETTER" in ast.dump(node.targets[0])
    ]
    assert homes == ["crosshatch.task.directions"]
    program = "import sys, crosshatch.report.page; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "torch" not in ran.stdout.split()


def test_arrivals_are_found_in_one_place() -> None:
    asking = [module.name for module in modules() if ".is_reached_by(" in module.text]
    # and whether to look at all test samples once some of them are there
    assert asking == ["crosshatch.report.measures", "crosshatch.runs.evaluating.some_rows"]


def test_first_reaching() -> None:
    rows: list[dict[str, float]] = [
        {"round": 0},
        {"round": 1, "auc": 0.7},
        {"round": 2, "auc": 0.8},
        {"round": 3, "auc": 0.9},
    ]
    assert first_reaching(rows, parse_target("auc=0.75")) == rows[2]
    assert first_reaching(rows, parse_target("auc=0.95")) is None
    assert first_reaching(rows, parse_target("loss=0.3")) is None


def test_a_target_is_not_reached_by_one_lucky_evaluation() -> None:
    rows = [{"auc": value} for value in (0.5, 0.9, 0.6, 0.7, 0.78, 0.8)]
    target = parse_target("auc=0.75")
    assert first_reaching(rows, target) == rows[1]
    assert first_reaching(rows, target, 3) == rows[5]  # (0.7 + 0.78 + 0.8) / 3
    assert first_reaching(rows[:2], target, 3) is None


def test_the_best_row_is_the_first_of_equal_ones() -> None:
    rows = [{"round": r, "auc": a, "loss": 1 - a} for r, a in enumerate((0.5, 0.9, 0.7, 0.9))]
    assert best_row(rows, "auc")["round"] == best_row(rows, "loss")["round"] == 1


def test_nan_reaches_nothing() -> None:
    assert not parse_target("auc=0").is_reached_by(float("nan"))
    assert not parse_target("loss=9").is_reached_by(float("nan"))


def test_main_metric() -> None:
    assert main_metric(("train_loss", "accuracy", "auc")) == "auc"
    assert main_metric(("lift", "gain")) == "lift"


def test_targets_ahead_are_those_that_a_second_look_at_all_evaluations_does_not_find_reached() -> None:
    draw = generator(3, "test")
    for smooth in (1, 3):
        rows: list[dict[str, float]] = []
        targets = [parse_target(text) for text in ("auc=0.6", "auc=0.8", "loss=0.1", "auc=0.95")]
        ahead = TargetsAhead(targets, smooth)
        for _ in range(40):
            rows += [{"auc": draw.random(), "loss": draw.random()} for _ in range(draw.integers(0, 3))]
            assert list(ahead.after(rows)) == [one for one in targets if first_reaching(rows, one, smooth) is None]
