"""The best round by the validation rows: its model is kept, patience ends a run, test rows choose nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from crosshatch.data.build import build
from crosshatch.errors import ConfigError, RunError
from crosshatch.runs.best_round import BestRound
from crosshatch.runs.config import Config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.runs.trained.load_run import load_run
from crosshatch.runs.watcher import Watcher
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines, model

VALIDATION = {"validation": 0.3}


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def files(folder: Path) -> dict[str, Any]:
    """What is in a model's files; of how it came to be the round alone."""
    found: dict[str, Any] = {path.name: path.read_bytes() for path in folder.iterdir()}
    found["model.json"] = json.loads(found["model.json"])
    found["model.json"]["trained"] = found["model.json"]["trained"]["round"]
    return found


@pytest.fixture
def restless(make_config: MakeConfig) -> Config:
    """Steps so large that rounds go up and down."""
    return make_config(
        data=VALIDATION, algorithm={"step_size": 2.0, "local_steps": 10}, evaluate={"every": 1}, run={"rounds": 12}
    )


@pytest.mark.parametrize("higher", [True, False])
def test_of_equal_rounds_the_first_is_best(higher: bool) -> None:
    best, values = (
        BestRound("validation_auc", higher),
        [0.5, 0.7, 0.7, 0.6, 0.7] if higher else [0.5, 0.3, 0.3, 0.4, 0.3],
    )
    for number, value in enumerate(values):
        best.see({"round": number, "validation_auc": value}, (torch.tensor([float(number)]),))
    assert best.describe()["round"] == 1
    assert torch.equal(best.weights[0], torch.tensor([1.0]))
    assert best.since == 3


def test_rows_are_measured_on_both(make_config: MakeConfig, out: Path) -> None:
    config = make_config(data=VALIDATION, evaluate={"every": 3, "metrics": ["auc", "loss"]})
    train(config, out=out)
    assert [row["round"] for row in rows(out)] == [0, 3, 6]
    assert {"auc", "loss", "validation_auc", "validation_loss"} <= set(rows(out)[0])
    simulator = prepare(config, folder=None).simulator
    for _ in range(6):
        simulator.run_round()
    assert simulator.evaluate(["auc"], on="validation")["auc"] == rows(out)[-1]["validation_auc"]
    assert simulator.evaluate(["auc"])["auc"] == rows(out)[-1]["auc"]


def test_the_best_rounds_model_is_kept(restless: Config, tmp_path: Path) -> None:
    train(restless, out=tmp_path / "whole")
    found = summary(tmp_path / "whole")
    best = found["best_round"]
    # what is called best is of that round, whatever test rows had at others
    assert {name: one["value"] for name, one in found["best"].items()} == {name: best[name] for name in found["final"]}
    assert {one["round"] for one in found["best"].values()} == {best["round"]}
    assert "peak_on_test_rows" not in found
    seen = [row["validation_auc"] for row in rows(tmp_path / "whole")]
    assert best["by"] == "validation_auc"
    assert best["round"] == seen.index(max(seen)) < 12, "the first of the best"
    assert best["auc"] == rows(tmp_path / "whole")[best["round"]]["auc"]
    shorter = replace(restless, run=replace(restless.run, rounds=best["round"]))
    train(shorter, out=tmp_path / "shorter")
    assert files(tmp_path / "whole" / "best_model") == files(tmp_path / "shorter" / "model")
    assert files(tmp_path / "whole" / "model") != files(tmp_path / "whole" / "best_model")
    trained = json.loads((tmp_path / "whole" / "best_model" / "model.json").read_text())["trained"]
    assert (trained["round"], trained["chosen_by"], trained["figures"]["auc"]) == (
        best["round"],
        best["by"],
        best["auc"],
    )


def test_the_best_rounds_model_predicts(restless: Config, tmp_path: Path) -> None:
    train(restless, out=tmp_path / "whole")
    best = summary(tmp_path / "whole")["best_round"]["round"]
    shorter = replace(restless, run=replace(restless.run, rounds=best))
    train(shorter, out=tmp_path / "shorter")
    usual, last = load_run(tmp_path / "whole"), load_run(tmp_path / "whole", round="last")
    assert usual.predict().frame.equals(load_run(tmp_path / "shorter", round="last").predict().frame)
    assert not usual.predict().frame.equals(last.predict().frame)


def test_a_stopped_run_predicts(make_config: MakeConfig, out: Path, tmp_path: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    train(make_config(run={"rounds": 3}), out=tmp_path / "three")
    stopped = load_run(out)
    assert not stopped.finished
    assert stopped.predict().frame.equals(load_run(tmp_path / "three").predict().frame)


def test_a_metric_of_ones_choice(make_config: MakeConfig, out: Path) -> None:
    train(make_config(data=VALIDATION, evaluate={"best_by": "loss", "every": 1}), out=out)
    seen = [row["validation_loss"] for row in rows(out)]
    assert (summary(out)["best_round"]["by"], summary(out)["best_round"]["round"]) == (
        "validation_loss",
        seen.index(min(seen)),
    )


def test_patience(restless: Config, tmp_path: Path) -> None:
    patient = replace(restless, run=replace(restless.run, rounds=60, patience=4))
    outcome = train(patient, out=tmp_path / "one")
    seen = [row["validation_auc"] for row in rows(tmp_path / "one")]
    assert outcome.finished
    assert outcome.round == seen.index(max(seen)) + 4 < 60
    assert train(patient, out=tmp_path / "one", resume=True).was_finished


@pytest.mark.parametrize("stop", [1, 4, 7])
def test_stopped_and_resumed_it_is_the_same(restless: Config, tmp_path: Path, stop: int) -> None:
    config = replace(restless, run=replace(restless.run, patience=5, checkpoint_every=3))
    train(config, out=tmp_path / "whole")
    train(config, out=tmp_path / "parted", watcher=StopAt(stop))
    train(config, out=tmp_path / "parted", resume=True)
    assert lines(tmp_path / "parted") == lines(tmp_path / "whole")
    assert model(tmp_path / "parted") == model(tmp_path / "whole")
    assert files(tmp_path / "parted" / "best_model") == files(tmp_path / "whole" / "best_model")
    ours, theirs = (summary(tmp_path / name)["best_round"] for name in ("parted", "whole"))
    assert {**ours, "wall_seconds": 0} == {**theirs, "wall_seconds": 0}


def test_a_stopped_run_leaves_its_model(make_config: MakeConfig, out: Path, tmp_path: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    train(make_config(run={"rounds": 3}), out=tmp_path / "three")
    assert files(out / "model") == files(tmp_path / "three" / "model")
    assert not (out / "summary.json").exists()


class Warned(Watcher):
    """Keeps what it is warned of."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def warned(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize("rounds", [1, 3])
def test_resumed_with_fewer_rounds_a_run_ends_where_it_is(
    make_config: MakeConfig, out: Path, tmp_path: Path, rounds: int
) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    heard = Warned()
    outcome = train(make_config(run={"rounds": rounds}), out=out, resume=True, watcher=heard)
    said = f"{out} has 3 rounds, more than run.rounds = 1: it ends with these"
    assert heard.said == ([said] if rounds < 3 else [])
    train(make_config(run={"rounds": 3}), out=tmp_path / "three")
    assert (outcome.finished, outcome.round) == (True, 3)
    assert [row["round"] for row in rows(out)] == [0, 2, 3]
    assert lines(out) == lines(tmp_path / "three")
    assert model(out) == model(tmp_path / "three")
    assert train(make_config(run={"rounds": 3}), out=out, resume=True).was_finished


def test_a_finished_run_is_not_cut(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out)
    with pytest.raises(RunError, match=r"has 6 rounds already, run.rounds = 5: set at least as many"):
        train(make_config(run={"rounds": 5}), out=out, resume=True)


def test_validation_rows_are_not_trained_on(make_config: MakeConfig) -> None:
    whole = make_config()
    part = make_config(data=VALIDATION)
    all_rows, fewer = (build(one.data, one.federation, seed=0) for one in (whole, part))
    assert fewer.y_validation is not None
    assert len(fewer.y_train) + len(fewer.y_validation) == len(all_rows.y_train)
    assert torch.equal(fewer.y_test, all_rows.y_test), "test rows are the same with and without"
    share = float(fewer.y_validation.mean()), float(all_rows.y_train.mean())
    assert share[0] == pytest.approx(share[1], abs=0.02)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"run": {"patience": 3}}, "run.patience = 3 needs validation rows: set data.validation"),
        ({"evaluate": {"best_by": "auc"}}, "evaluate.best_by = 'auc' needs validation rows"),
        ({"data": {"validation": 0.2}, "evaluate": {"best_by": "lift"}}, "one of what is measured on the validation"),
        ({"data": {"validation": 0.2}, "run": {"patience": 0}}, "run.patience = 0"),
        ({"data": {"validation": 1.5}}, "data.validation = 1.5: it must be between 0 and 1"),
        ({"data": {"validation": 0.0001}}, "rows cannot be divided with data.validation = 0.0001"),
        ({"data": {"validation": "rows.csv"}}, "a file of validation rows goes with files of your own"),
    ],
)
def test_refused(make_config: MakeConfig, out: Path, sections: dict[str, dict[str, Any]], message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        train(make_config(**sections), out=out)
    assert isinstance(caught.value, ConfigError) or "cannot be divided" in message
    assert not out.exists()
