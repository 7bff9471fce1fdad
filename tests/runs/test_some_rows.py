"""`evaluate.test_samples`: some test samples while training, all of them at targets and at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crosshatch import read_config, train
from crosshatch.errors import ConfigError

CONFIG = """
[data]
name = "breast_cancer"
[federation]
silos = 2
[algorithm]
name = "fedbcd"
local_steps = 2
step_size = 0.01
batch_size = 32
[evaluate]
every = 2
metrics = ["auc", "accuracy"]
[run]
rounds = 12
threads = 1
"""


def run(folder: Path, name: str, *changes: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    path = folder / "config.toml"
    path.write_text(CONFIG)
    config = read_config(path, changes, name=name)
    train(config, out=folder / name)
    rows = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
    return rows, json.loads((folder / name / "summary.json").read_text())


def test_some_while_training_and_all_at_the_end(tmp_path: Path) -> None:
    everything, whole = run(tmp_path, "all")
    some, summary = run(tmp_path, "some", "evaluate.test_samples=40")
    assert [row["test_samples"] for row in some] == [40] * 6 + [114]
    assert "test_samples" not in everything[0]
    assert [row["train_loss"] for row in some] == [row["train_loss"] for row in everything]
    assert [row["auc"] for row in some[:-1]] != [row["auc"] for row in everything[:-1]]
    assert summary["final"] == whole["final"]


def test_all_where_a_target_is_reached(tmp_path: Path) -> None:
    changes = "evaluate.targets=['auc=0.97']", "run.stop_at_targets=true", "run.rounds=100"
    everything, whole = run(tmp_path, "all", *changes)
    some, summary = run(tmp_path, "some", *changes, "evaluate.test_samples=40")
    assert some[-1]["test_samples"] == 114
    assert some[-1]["auc"] >= 0.97
    reached = summary["targets"]["auc>=0.97"]["round"]
    assert reached == some[-1]["round"]
    of_all = {row["round"]: row["auc"] for row in everything}
    assert all(
        row["auc"] == of_all[row["round"]] for row in some if row["test_samples"] == 114 and row["round"] in of_all
    )
    assert reached >= whole["targets"]["auc>=0.97"]["round"]  # never by the drawn ones alone


def test_all_where_a_run_ends_early(tmp_path: Path) -> None:
    changes = "data.validation=0.2", "run.patience=1", "run.rounds=400", "evaluate.test_samples=40"
    some, summary = run(tmp_path, "some", *changes)
    assert summary["rounds"] < 400
    assert [row["test_samples"] for row in some][-2:] == [40, 114]
    assert summary["final"]["auc"] == some[-1]["auc"]


def test_more_than_there_are_is_all(tmp_path: Path) -> None:
    assert run(tmp_path, "all")[1]["final"] == run(tmp_path, "some", "evaluate.test_samples=1000")[1]["final"]
    with pytest.raises(ConfigError, match=r"evaluate.test_samples = 0"):
        run(tmp_path, "none", "evaluate.test_samples=0")
