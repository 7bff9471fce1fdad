"""Runs that diverge: where they end, what their directories hold, and how they go on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from crosshatch.errors import DivergenceError, TrainingError
from crosshatch.report.runs import read_run
from crosshatch.runs.checkpoint import read_checkpoint
from crosshatch.runs.config import Config, decode_config
from crosshatch.runs.train import train
from crosshatch.runs.watcher import Watcher
from tests.support.training import lines, model

TABLES: dict[str, Any] = {
    "data": {"name": "digits"},
    "federation": {"split": "halves", "silos": [{"name": "left"}, {"name": "right"}], "labels": "left"},
    "model": {"block": "mlp", "hidden": [8]},
    "algorithm": {"name": "fedbcd", "local_steps": 20, "step_size": 0.05, "batch_size": 256},
    "evaluate": {"every": 2},
    "run": {"name": "frozen", "rounds": 20, "threads": 1},
}


def frozen(**run: Any) -> Config:
    """Labels at one silo, derivatives frozen for twenty steps: the loss falls at first, then grows without end."""
    return decode_config(TABLES | {"run": TABLES["run"] | run})


class Listener(Watcher):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, Any]] = []
        self.warnings: list[tuple[int, str]] = []

    def evaluated(self, row: Mapping[str, Any]) -> None:
        self.rows.append(row)

    def warned(self, text: str) -> None:
        self.warnings.append((len(self.rows), text))


def summary(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "summary.json").read_text())
    return found


def limit(path: Path) -> float:
    """By hand: ten classes, scores of zero."""
    first: float = lines(path)[0]["train_loss"]
    return 10 * max(first, math.log(10))


def test_the_run_ends_at_the_first_evaluation_above_the_limit(out: Path) -> None:
    with pytest.raises(TrainingError, match=r"^round 16: training diverged, the .* abcd.* is kept in"):
        train(frozen(), out=out)
    losses = [row["train_loss"] for row in lines(out)]
    assert all(loss <= limit(out) for loss in losses[:-1])
    assert losses[-1] > limit(out)
    assert lines(out)[-1]["round"] < 20


def test_the_directory_is_complete_and_of_that_round(out: Path) -> None:
    with pytest.raises(DivergenceError):
        train(frozen(), out=out)
    last, found = lines(out)[-1], summary(out)
    assert found["diverged"]["round"] == found["rounds"] == last["round"]
    assert found["diverged"]["why"].startswith(f"round {last['round']}: training diverged")
    assert (found["bytes"], found["final"]["train_loss"]) == (last["bytes"], last["train_loss"])
    tensors, state = read_checkpoint(out / "checkpoint" / "state.safetensors")
    assert state.simulator["round"] == last["round"]
    assert state.metrics_offset == (out / "metrics.jsonl").stat().st_size
    saved = torch.cat([tensor.flatten() for tensor in load_file(out / "model" / "left.safetensors").values()])
    assert saved.sort().values.equal(tensors["block.0.0"].sort().values)
    run = read_run(out)
    assert run.finished
    assert run.diverged


def test_a_loss_that_rises_a_little_is_no_divergence(out: Path) -> None:
    """Three times what it was, after two steps that are too long."""
    tables = TABLES | {
        "data": {"name": "diabetes"}, "federation": {"silos": 2}, "model": {},
        "algorithm": {"name": "fedsgd", "step_size": 0.9}, "evaluate": {"every": 1},
        "run": {"name": "rising", "rounds": 2, "threads": 1},
    }  # fmt: skip
    outcome = train(decode_config(tables), out=out)
    losses = [row["train_loss"] for row in lines(out)]
    assert 3 * losses[0] < max(losses) < 10 * losses[0]
    assert outcome.finished
    assert "diverged" not in outcome.summary
    assert not read_run(out).diverged


def test_with_warn_it_goes_on(out: Path) -> None:
    listener = Listener()
    outcome = train(frozen(on_divergence="warn"), out=out, watcher=listener)
    assert outcome.finished
    assert [row["round"] for row in lines(out)] == list(range(0, 21, 2))
    assert summary(out) == outcome.summary
    first = next(row for row in lines(out) if row["train_loss"] > limit(out))
    assert first["round"] < 20
    assert outcome.summary["diverged"]["round"] == first["round"]
    ((told, text),) = listener.warnings  # once, right after the evaluation
    assert listener.rows[told - 1]["round"] == first["round"]
    assert text == outcome.summary["diverged"]["why"]


def test_a_warning_in_the_last_round(tmp_path: Path) -> None:
    with pytest.raises(DivergenceError):
        train(frozen(), out=tmp_path / "whole")
    end, listener = summary(tmp_path / "whole")["rounds"], Listener()
    train(frozen(on_divergence="warn", rounds=end), out=tmp_path / "warned", watcher=listener)
    assert len(listener.warnings) == 1
    with pytest.raises(DivergenceError):
        train(frozen(rounds=end), out=tmp_path / "stopped")


def test_resumed_as_it_was_it_says_the_same_and_changes_nothing(out: Path) -> None:
    with pytest.raises(DivergenceError) as first:
        train(frozen(), out=out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(DivergenceError) as second:
        train(frozen(rounds=30), out=out, resume=True)
    assert str(first.value) == str(second.value)
    assert "--resume with run.on_divergence = 'warn'" in str(second.value)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_resumed_with_warn_it_goes_on_as_if_it_had_never_ended(tmp_path: Path) -> None:
    train(frozen(on_divergence="warn"), out=tmp_path / "whole")
    with pytest.raises(DivergenceError):
        train(frozen(), out=tmp_path / "parted")
    listener = Listener()
    outcome = train(frozen(on_divergence="warn"), out=tmp_path / "parted", resume=True, watcher=listener)
    assert model(tmp_path / "parted") == model(tmp_path / "whole")
    assert lines(tmp_path / "parted") == lines(tmp_path / "whole")
    assert outcome.summary["diverged"] == summary(tmp_path / "whole")["diverged"]
    assert [text for _, text in listener.warnings] == [outcome.summary["diverged"]["why"]]
    assert 'on_divergence = "warn"' in (tmp_path / "parted" / "config.toml").read_text()


def test_killed_before_its_summary(out: Path) -> None:
    with pytest.raises(DivergenceError):
        train(frozen(), out=out)
    before, rows, found = model(out), lines(out), summary(out)
    (out / "summary.json").unlink()
    with pytest.raises(DivergenceError):
        train(frozen(), out=out, resume=True)
    assert (model(out), lines(out), summary(out)["diverged"]) == (before, rows, found["diverged"])


def broken(**run: Any) -> Config:
    """A regression whose loss grows until it is no number any more."""
    tables = {
        "data": {"name": "diabetes"}, "federation": {"silos": 2},
        "algorithm": {"name": "fedsgd", "step_size": 4.0}, "evaluate": {"every": 10},
        "run": {"name": "broken", "rounds": 200, "threads": 1, "on_divergence": "warn"} | run,
    }  # fmt: skip
    return decode_config(tables)


def test_numbers_that_are_no_longer_finite_mark_the_summary_too(out: Path) -> None:
    with pytest.raises(DivergenceError, match=r"no longer finite.*; the rounds before are kept in") as said:
        train(broken(), out=out)
    found = summary(out)
    assert found["diverged"]["round"] == 10  # first noticed by the rule
    assert read_run(out).diverged
    assert f"round {found['rounds']}: " in str(said.value)
    _, state = read_checkpoint(out / "checkpoint" / "state.safetensors")
    assert state.simulator["round"] < found["rounds"]  # the last that was finite, to go on from
    with pytest.raises(DivergenceError) as again:
        train(broken(), out=out, resume=True)
    assert str(again.value) == str(said.value)
    assert summary(out)["diverged"] == found["diverged"]


def test_numbers_that_break_between_two_evaluations(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule had nothing to notice: the error itself is the reason."""
    from crosshatch.simulator.simulator import Simulator

    real = Simulator.run_round

    def run_round(self: Simulator) -> None:
        real(self)
        if self.round == 13:
            raise TrainingError("round 13: the block of silo 'a' is no longer finite")

    monkeypatch.setattr(Simulator, "run_round", run_round)
    tables = {
        "data": {"name": "wine"}, "federation": {"silos": 2}, "algorithm": {"name": "fedsgd", "step_size": 0.05},
        "evaluate": {"every": 5}, "run": {"name": "x", "rounds": 20, "threads": 1},
    }  # fmt: skip
    with pytest.raises(DivergenceError):
        train(decode_config(tables), out=out)
    assert summary(out)["diverged"] == {"round": 13, "why": "round 13: the block of silo 'a' is no longer finite"}
    assert [row["round"] for row in lines(out)] == [0, 5, 10]
