"""Runs as MLflow reads them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import DivergenceError, RunError
from crosshatch.runs.train import train
from tests.support.breaking import BreakAt
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines

pytest.importorskip("mlflow", reason='MLflow is not installed: pip install -e ".[tracking]"')

TRACKED = {"track": ["mlflow"]}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's."""
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from mlflow import MlflowClient

    with monkeypatch.context() as patch:
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        return MlflowClient(folder.resolve().as_uri())


def runs(folder: Path, monkeypatch: pytest.MonkeyPatch, experiment: str = "crosshatch") -> list[Any]:
    asked = client(folder, monkeypatch)
    return list(asked.search_runs([asked.get_experiment_by_name(experiment).experiment_id]))


def require_equal(out: Path, monkeypatch: pytest.MonkeyPatch, folder: Path | None = None) -> Any:
    """Every figure of every evaluation is there once, in one run, which is returned."""
    folder = folder or out / "tracking" / "mlflow"
    (run,) = runs(folder, monkeypatch)
    rows, asked = lines(out, wall=True), client(folder, monkeypatch)
    for name in set(rows[0]) - {"round"}:
        history = sorted(asked.get_metric_history(run.info.run_id, name), key=lambda one: one.step)
        assert [one.step for one in history] == [row["round"] for row in rows]
        if name != "wall_seconds":
            assert [one.value for one in history] == [row[name] for row in rows]
    return run


def test_a_run(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = dict(os.environ)
    outcome = train(make_config(run=TRACKED), out=out)
    assert {name: os.environ[name] for name in before} == before
    assert "MLFLOW_ALLOW_FILE_STORE" not in os.environ
    run = require_equal(out, monkeypatch)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "small"
    assert run.data.params["algorithm.step_size"] == "0.3"
    assert run.data.params["federation.silos.1.name"] == "b"
    assert run.data.params["evaluate.targets"] == '["auc=0.9"]'
    assert run.data.params["data.standardise"] == "true"
    assert run.data.tags["crosshatch.algorithm"] == "tdcd"
    assert run.data.tags["crosshatch.state"] == "finished"
    best = outcome.summary["best"]
    assert {name: run.data.metrics[f"best_{name}"] for name in best} == {
        name: one["value"] for name, one in best.items()
    }
    artifacts = next((out / "tracking" / "mlflow").glob("*/*/artifacts"))
    assert (artifacts / "config.toml").read_text() == (out / "config.toml").read_text()
    assert json.loads((artifacts / "summary.json").read_text()) == outcome.summary


@pytest.mark.parametrize("stop", [1, 4])
def test_a_resumed_run(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    config = make_config(run=TRACKED, evaluate={"every": 1})
    train(config, out=out, watcher=StopAt(stop))
    first = require_equal(out, monkeypatch)
    assert (first.info.status, first.data.tags["crosshatch.state"]) == ("KILLED", "stopped")
    train(config, out=out, resume=True)
    second = require_equal(out, monkeypatch)
    assert second.info.run_id == first.info.run_id
    assert (second.info.status, second.data.tags["crosshatch.state"]) == ("FINISHED", "finished")


def test_names_that_mlflow_would_not_take(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of silos in keys, of folders, and more settings than a request may have."""
    silos = [{"name": "Bank & Co, ä@1", "span": [0, 2]}, *({"name": f"b{i}", "span": [i, i + 1]} for i in range(2, 30))]
    config = make_config(
        federation={"silos": silos},
        model={"blocks": {"Bank & Co, ä@1": {"bias": False}}},
        run=TRACKED | {"name": "run, 1 & 2"},
    )
    train(config, out=out / "with spaces, ä%20#")
    run = require_equal(out / "with spaces, ä%20#", monkeypatch)
    assert run.info.run_name == "run, 1 & 2"
    assert run.data.params["model.blocks.Bank _ Co_ ä_1.bias"] == "false"
    assert run.data.params["federation.silos.28.span"] == "[29, 30]"
    assert len(run.data.params) > 100


def test_a_run_that_was_moved_and_goes_on(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(make_config(run=TRACKED), out=out)
    out.rename(out.with_name("two"))
    train(make_config(run=TRACKED | {"rounds": 10}), out=out.with_name("two"), resume=True)
    run = require_equal(out.with_name("two"), monkeypatch)
    assert run.data.params["run.rounds"] == "6"  # as it began: MLflow changes no parameter


def test_rounds_after_the_last_checkpoint(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config(run=TRACKED | {"checkpoint_every": 6}, evaluate={"every": 1})
    with pytest.raises(ZeroDivisionError):
        train(config, out=out, watcher=BreakAt(3))
    (run,) = runs(out / "tracking" / "mlflow", monkeypatch)
    assert (run.info.status, run.data.tags["crosshatch.why"]) == ("FAILED", "by accident")
    train(config, out=out, resume=True)
    require_equal(out, monkeypatch)


def test_a_run_that_diverges(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DivergenceError):
        train(make_config(run=TRACKED, algorithm={"step_size": 1e4}), out=out)
    run = require_equal(out, monkeypatch)
    assert (run.info.status, run.data.tags["crosshatch.state"]) == ("FAILED", "diverged")
    assert "training loss" in run.data.tags["crosshatch.why"]


def test_where_the_environment_says(
    make_config: MakeConfig, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", folder.as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    train(make_config(run=TRACKED), out=out, watcher=StopAt(3))
    train(make_config(run=TRACKED), out=out, resume=True)
    require_equal(out, monkeypatch, folder)
    assert not (out / "tracking" / "mlflow").exists()
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "hospitals")
    for name in ("two", "three"):
        train(make_config(run=TRACKED | {"name": name}), out=tmp_path / name)
    assert {run.info.run_name for run in runs(folder, monkeypatch, "hospitals")} == {"two", "three"}


def test_another_address_later(
    make_config: MakeConfig, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is a run of its own there, and complete."""
    train(make_config(run=TRACKED), out=out, watcher=StopAt(3))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    train(make_config(run=TRACKED), out=out, resume=True)
    require_equal(out, monkeypatch, tmp_path / "store")


def test_a_server_that_does_not_answer(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(RunError) as caught:
        train(make_config(run=TRACKED), out=out)
    assert str(caught.value).startswith("run.track: MLflow at http://127.0.0.1:9 cannot be used (")
    assert str(caught.value).endswith("check MLFLOW_TRACKING_URI, or leave mlflow out")
    assert "\n" not in str(caught.value)
    assert not out.parent.exists()


@pytest.mark.parametrize("address", ["nonsense://x", "postgresql://me@nowhere/x"])
def test_addresses_that_mlflow_does_not_take(
    make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    with pytest.raises(RunError, match=r"run.track: MLflow at .*check MLFLOW_TRACKING_URI"):
        train(make_config(run=TRACKED), out=out)
    assert not out.parent.exists()


def test_a_run_that_is_given_up_leaves_nothing(make_config: MakeConfig, out: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        train(make_config(run=TRACKED), out=out, watcher=BreakAt(0))
    assert not out.parent.exists()


def test_a_run_that_was_deleted_there(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(make_config(run=TRACKED), out=out, watcher=StopAt(3))
    folder = out / "tracking" / "mlflow"
    client(folder, monkeypatch).delete_run(runs(folder, monkeypatch)[0].info.run_id)
    with pytest.raises(RunError, match=r"run.track: MLflow at the run directory cannot be used"):
        train(make_config(run=TRACKED), out=out, resume=True)
