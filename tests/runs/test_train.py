"""A run from config to directory: its files, equal runs, resuming, and what errors leave behind."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from crosshatch.cli.progress import PlainProgress
from crosshatch.errors import ConfigError, DivergenceError, ModelError, RunError, TrainingError
from crosshatch.network import BandwidthNetwork
from crosshatch.runs import files
from crosshatch.runs.checkpoint import read_checkpoint
from crosshatch.runs.config import decode_config, read_config
from crosshatch.runs.one_writer import BusyError, one_writer
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines, model


def test_the_files_of_a_run(make_config: MakeConfig, out: Path) -> None:
    outcome = train(make_config(), out=out)
    assert outcome.finished
    assert sorted(p.name for p in out.iterdir()) == [
        "checkpoint", "config.toml", "fingerprint.json", "metrics.jsonl", "model", "summary.json",
    ]  # fmt: skip
    rows = lines(out, wall=True)
    assert [row["round"] for row in rows] == [0, 2, 4, 6]
    assert [row["iteration"] for row in rows] == [0, 8, 16, 24]
    assert list(rows[0]) == [
        "iteration", "round", "bytes", "messages", "sim_seconds", "wall_seconds",
        "train_loss", "loss", "accuracy", "auc",
    ]  # fmt: skip
    assert rows[0]["train_loss"] == pytest.approx(0.6931472, abs=1e-6)  # log 2: weights start at zero
    assert [row["sim_seconds"] for row in rows] == [r * (3 * 10.0 + 4 * 1.0) for r in (0, 2, 4, 6)]

    summary = json.loads((out / "summary.json").read_text())
    assert summary == outcome.summary
    assert summary["final"] == {key: rows[-1][key] for key in ("train_loss", "loss", "accuracy", "auc")}
    # without validation rows only the training rows may say what is best
    assert summary["best"] == {"train_loss": {"value": min(row["train_loss"] for row in rows), "round": 6}}
    assert summary["peak_on_test_rows"]["auc"]["value"] == max(row["auc"] for row in rows)
    assert summary["bytes"] == rows[-1]["bytes"] == sum(v["bytes"] for v in summary["bytes_by_link"].values())
    assert summary["bytes"] == sum(summary["bytes_by_exchange"].values())
    first = next(row for row in rows if row["auc"] >= 0.9)
    assert summary["targets"] == {"auc>=0.9": {key: first[key] for key in ("round", "bytes", "sim_seconds")}}
    assert summary["federation"]["silos"][0] == {
        "name": "a", "clients": 3, "features": 10, "samples": 455, "parameters": 11, "holds_labels": True,
    }  # fmt: skip
    assert summary["federation"]["tiers"] == "V(4) H(4)"
    assert set(summary["strategy"]) == {"a", "b"}
    # logistic, 10 columns: 2 x 10 operations a sample forward, as many for the gradient; 48 samples, 24 steps
    assert [cost["run_flops"] for cost in summary["cost"].values()] == [24 * 48 * 4 * 10] * 2


def test_the_model_files_give_the_final_metrics(make_config: MakeConfig, out: Path) -> None:
    config = make_config(model={"block": "mlp", "hidden": [5], "fusion": "head", "outputs": 3})
    outcome = train(config, out=out)
    tensors = {silo: load_file(out / "model" / f"{silo}.safetensors") for silo in ("a", "b", "head")}
    assert {name: tuple(t.shape) for name, t in tensors["a"].items()} == {
        "layers.0.weight": (5, 10), "layers.0.bias": (5,), "layers.2.weight": (3, 5), "layers.2.bias": (3,),
    }  # fmt: skip
    assert tuple(tensors["head"]["weight"].shape) == (1, 6)
    # an independent forward pass over the data as the simulator has it
    from crosshatch.runs.prepare import prepare

    simulator = prepare(config, folder=None).simulator
    embeddings = []
    for silo in simulator.data.silos:
        own = tensors[silo.name]
        hidden = torch.relu(silo.test @ own["layers.0.weight"].T + own["layers.0.bias"])
        embeddings.append(hidden @ own["layers.2.weight"].T + own["layers.2.bias"])
    scores = torch.cat(embeddings, 1) @ tensors["head"]["weight"].T + tensors["head"]["bias"]
    right = (scores[:, 0] > 0) == (simulator.data.y_test == 1)
    assert outcome.summary["final"]["accuracy"] == pytest.approx(float(right.double().mean()))


def test_convolutions_are_written_in_standard_order(make_config: MakeConfig, out: Path) -> None:
    config = make_config(
        data={"name": "digits", "limit": 60}, federation={"silos": [{"name": "l"}, {"name": "r"}], "split": "halves"},
        model={"block": "cnn", "channels": 3, "dense": 4}, algorithm={"batch_size": 20},
        evaluate={"targets": [], "every": 1}, run={"rounds": 1},
    )  # fmt: skip
    train(config, out=out)
    tensors = load_file(out / "model" / "l.safetensors")
    kernels = [tensor for tensor in tensors.values() if tensor.dim() == 4]
    assert kernels
    assert all(tensor.is_contiguous() for tensor in kernels)


@pytest.mark.parametrize("network", [{"kind": "constant"}, {"kind": "bandwidth", "step_seconds": 0.01}])
def test_equal_runs_write_equal_bytes(make_config: MakeConfig, tmp_path: Path, network: dict[str, Any]) -> None:
    config = make_config(network=network)
    for name in ("one", "two"):
        train(config, out=tmp_path / name)
    assert lines(tmp_path / "one") == lines(tmp_path / "two")
    texts = [(tmp_path / name / "metrics.jsonl").read_bytes().split(b'"wall_seconds"') for name in ("one", "two")]
    assert [t.split(b",", 1)[-1] for t in texts[0]] == [t.split(b",", 1)[-1] for t in texts[1]]
    assert model(tmp_path / "one") == model(tmp_path / "two")
    assert (tmp_path / "one" / "config.toml").read_bytes() == (tmp_path / "two" / "config.toml").read_bytes()


def test_the_written_config_runs_again(make_config: MakeConfig, tmp_path: Path) -> None:
    train(make_config(network={"kind": "bandwidth", "step_seconds": "measure"}), out=tmp_path / "one")
    again = read_config(tmp_path / "one" / "config.toml")
    assert isinstance(again.network, BandwidthNetwork)
    assert again.network.step_seconds > 0
    assert again.network.step_seconds == float(f"{again.network.step_seconds:.3g}")
    assert again.model.loss == "logistic"
    assert again.run.threads == 1
    train(again, out=tmp_path / "two")
    assert lines(tmp_path / "one") == lines(tmp_path / "two")


def test_precision_and_a_limited_training_loss(make_config: MakeConfig, out: Path) -> None:
    train(make_config(run={"precision": "float64"}, evaluate={"train_samples": 50}), out=out)
    assert load_file(out / "model" / "a.safetensors")["layers.0.weight"].dtype == torch.float64


def test_stop_at_targets(make_config: MakeConfig, out: Path) -> None:
    outcome = train(make_config(run={"stop_at_targets": True, "rounds": 50}), out=out)
    assert outcome.finished
    assert outcome.round == outcome.summary["targets"]["auc>=0.9"]["round"] < 50
    assert train(make_config(run={"stop_at_targets": True, "rounds": 50}), out=out, resume=True).was_finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stop", [1, 3, 4])
def test_stopped_and_resumed_is_the_same(
    make_config: MakeConfig, tmp_path: Path, stop: int, number: signal.Signals
) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    config = make_config(run={"checkpoint_every": 5})
    train(config, out=whole)
    outcome = train(config, out=parted, watcher=StopAt(stop, number))
    assert (outcome.finished, outcome.round) == (False, stop)
    assert not (parted / "summary.json").exists()
    assert train(config, out=parted, resume=True).finished
    assert lines(parted) == lines(whole)
    assert model(parted) == model(whole)
    ours, theirs = (json.loads((p / "summary.json").read_text()) | {"wall_seconds": 0} for p in (parted, whole))
    assert ours == theirs


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "tdcd", "batches": "fresh"},
        {"name": "tiered", "tiers": "V(4) H(2)"},
        {"name": "central", "local_steps": 2},
        {"name": "abcd", "local_steps": 4, "window": 3},
    ],
)
def test_other_algorithms_resume_too(tmp_path: Path, algorithm: dict[str, Any]) -> None:
    tables = {"step_size": 0.2, "batch_size": 32} | algorithm
    config = decode_config(
        {
            "data": {"name": "breast_cancer"}, "federation": {"silos": 2, "clients": 3, "labels": "silo2"},
            "model": {"block": "mlp", "hidden": [6]}, "algorithm": tables,
            "run": {"rounds": 5, "name": "x", "threads": 1},
        }
    )  # fmt: skip
    train(config, out=tmp_path / "whole")
    train(config, out=tmp_path / "parted", watcher=StopAt(2))
    train(config, out=tmp_path / "parted", resume=True)
    assert model(tmp_path / "parted") == model(tmp_path / "whole")
    assert lines(tmp_path / "parted") == lines(tmp_path / "whole")


def test_what_came_after_the_checkpoint_is_cut(make_config: MakeConfig, tmp_path: Path) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    train(make_config(), out=whole)
    train(make_config(), out=parted, watcher=StopAt(3))
    with open(parted / "metrics.jsonl", "a") as file:
        file.write('{"round": 4, "half a li')
    train(make_config(), out=parted, resume=True)
    assert lines(parted) == lines(whole)


def test_more_rounds(make_config: MakeConfig, tmp_path: Path) -> None:
    longer = make_config(run={"rounds": 10})
    train(longer, out=tmp_path / "whole")
    train(make_config(), out=tmp_path / "parted")
    outcome = train(longer, out=tmp_path / "parted", resume=True)
    assert outcome.round == 10
    assert model(tmp_path / "parted") == model(tmp_path / "whole")
    assert tomllib.loads((tmp_path / "parted" / "config.toml").read_text())["run"]["rounds"] == 10


def test_a_finished_run_stays(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    outcome = train(make_config(), out=out, resume=True)
    assert outcome.was_finished
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before


def test_killed_before_its_summary(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out)
    before = model(out)
    (out / "summary.json").unlink()
    (out / "model" / "a.safetensors").unlink()
    outcome = train(make_config(), out=out, resume=True)
    assert not outcome.was_finished
    assert model(out) == before


def test_killed_before_its_first_checkpoint(make_config: MakeConfig, out: Path) -> None:
    out.mkdir(parents=True)
    (out / "metrics.jsonl").write_text("")
    (out / "config.toml.partial").write_text("[da")
    assert train(make_config(), out=out, resume=True).finished
    assert [row["round"] for row in lines(out)] == [0, 2, 4, 6]


def test_resume_without_a_run_starts_one(make_config: MakeConfig, out: Path) -> None:
    assert train(make_config(), out=out, resume=True).finished


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_another_process_writes_is_left_alone(make_config: MakeConfig, out: Path, resume: bool) -> None:
    """Another thread stands for another process."""
    if resume:
        train(make_config(), out=out, watcher=StopAt(3))
    else:
        out.mkdir(parents=True)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with ThreadPoolExecutor(1) as other, ExitStack() as held:
        other.submit(held.enter_context, one_writer(out, "training")).result()
        with pytest.raises(BusyError, match=rf"another process is writing .*: process {os.getpid()} on .*, training"):
            train(make_config(), out=out, resume=resume)
        other.submit(held.close).result()
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    assert train(make_config(), out=out, resume=resume).finished


@pytest.mark.parametrize("resume", [False, True])
def test_a_second_run_while_the_first_is_prepared(
    make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch, resume: bool
) -> None:
    """The folder is not there yet when both look: the whole second run would fit between look and first file."""
    seconds: list[str] = []

    def prepare_both(*given: Any, **settings: Any) -> Any:
        if not seconds:
            seconds.append("asked")
            with ThreadPoolExecutor(1) as other, pytest.raises(BusyError, match="another process is writing"):
                other.submit(train, make_config(), out=out, resume=resume).result()
            seconds.append("refused")
        return prepare(*given, **settings)

    monkeypatch.setattr("crosshatch.runs.train.prepare", prepare_both)
    assert train(make_config(), out=out).finished
    assert seconds == ["asked", "refused"]
    assert [row["round"] for row in lines(out)] == [0, 2, 4, 6]


def test_resume_with_another_config(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    changed = make_config(algorithm={"step_size": 0.2}, run={"seed": 5})
    with pytest.raises(RunError) as caught:
        train(changed, out=out, resume=True)
    assert "algorithm.step_size = 0.2 (was 0.3)" in str(caught.value)
    assert "run.seed = 5 (was 0)" in str(caught.value)
    assert train(make_config(run={"rounds": 5}), out=out, resume=True).round == 5  # it may end earlier


def test_a_run_that_ends_where_it_is_counts_its_own_rounds(make_config: MakeConfig, out: Path) -> None:
    """It has done more than it is now asked for: not "round 3/2"."""
    train(make_config(), out=out, watcher=StopAt(3))
    text = io.StringIO()
    assert train(make_config(run={"rounds": 2}), out=out, resume=True, watcher=PlainProgress(text)).round == 3
    assert re.findall(r"round +\d+/\d+", text.getvalue()) == ["round 3/3"]


def test_resume_keeps_the_measured_time(make_config: MakeConfig, out: Path) -> None:
    config = make_config(network={"kind": "bandwidth", "step_seconds": "measure"})
    train(config, out=out, watcher=StopAt(2))
    before = (out / "config.toml").read_text()
    train(config, out=out, resume=True)
    assert (out / "config.toml").read_text() == before


def test_resume_from_a_broken_checkpoint(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(2))
    (out / "checkpoint" / "state.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}")
    with pytest.raises(RunError, match=r"state.safetensors cannot be read .*: remove the folder"):
        train(make_config(), out=out, resume=True)


def test_resume_with_metrics_cut_short(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(2))
    (out / "metrics.jsonl").write_text("")
    with pytest.raises(RunError, match="shorter than its checkpoint says"):
        train(make_config(), out=out, resume=True)


def test_an_existing_folder_is_refused(make_config: MakeConfig, out: Path) -> None:
    out.mkdir(parents=True)
    (out / "precious").write_text("x")
    with pytest.raises(RunError, match=r"exists and is not empty: choose another --out, or --resume"):
        train(make_config(), out=out)
    with pytest.raises(RunError, match="is not a run directory"):
        train(make_config(), out=out, resume=True)
    with pytest.raises(RunError, match="is a file"):
        train(make_config(), out=out / "precious")
    assert [p.name for p in out.iterdir()] == ["precious"]


def test_an_empty_folder_will_do(make_config: MakeConfig, out: Path) -> None:
    out.mkdir(parents=True)
    assert train(make_config(), out=out).finished


def test_divergence_at_once_keeps_the_start(make_config: MakeConfig, out: Path) -> None:
    config = make_config(
        data={"name": "diabetes"}, federation={"silos": 2}, algorithm={"step_size": 1e9},
        evaluate={"targets": [], "every": 50}, run={"rounds": 100},
    )  # fmt: skip
    with pytest.raises(DivergenceError, match=r"round \d+: .* diverged: lower algorithm.step_size .* are kept in"):
        train(config, out=out)
    assert [row["round"] for row in lines(out)] == [0]
    summary = json.loads((out / "summary.json").read_text())
    assert 0 < summary["diverged"]["round"] == summary["rounds"] < 50
    _, state = read_checkpoint(out / "checkpoint" / "state.safetensors")
    assert state.simulator["round"] < summary["rounds"]


def test_divergence_later_keeps_what_was_measured(make_config: MakeConfig, out: Path) -> None:
    config = make_config(
        data={"name": "diabetes"}, federation={"silos": 2}, algorithm={"step_size": 8.0},
        evaluate={"targets": [], "every": 1}, run={"rounds": 500, "on_divergence": "warn"},
    )  # fmt: skip
    with pytest.raises(TrainingError, match=r"lower algorithm.step_size .*; the rounds before are kept in"):
        train(config, out=out)
    assert len(lines(out)) > 1


def test_a_strategy_that_does_not_fit_leaves_nothing(make_config: MakeConfig, out: Path, tmp_path: Path) -> None:
    config = make_config(
        data={"name": "digits", "limit": 60}, federation={"silos": [{"name": "l"}, {"name": "r"}], "split": "halves"},
        model={"block": "cnn", "channels": 2, "dense": 4, "l1": 0.1}, algorithm={"batch_size": 20},
        evaluate={"targets": []}, run={"strategy": "gram"},
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"run.strategy = 'gram'"):
        train(config, out=out)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("after", [0, 1])
def test_disk_full_at_the_start_leaves_nothing(
    make_config: MakeConfig, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, code: int
) -> None:
    count = 0

    def full(_: int) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr("crosshatch.runs.files.os.fsync", full)
    with pytest.raises(RunError, match=r"no space left to write .*free some space or choose another --out"):
        train(make_config(), out=out)
    assert list(tmp_path.iterdir()) == []


def test_disk_full_later_can_be_resumed(
    make_config: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    train(make_config(), out=whole)
    real, rounds = files.write_whole, []

    def full(path: Path, content: bytes) -> None:
        rounds.append(path)
        if len(rounds) > 4:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        real(path, content)

    monkeypatch.setattr("crosshatch.runs.checkpoint.write_whole", full)
    with pytest.raises(RunError, match="no space left"):
        train(make_config(run={"checkpoint_every": 1}), out=parted)
    monkeypatch.undo()
    assert not list(parted.rglob("*.partial"))
    train(make_config(run={"checkpoint_every": 1}), out=parted, resume=True)
    assert model(parted) == model(whole)


def test_a_folder_nobody_may_write(make_config: MakeConfig, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        train(make_config(), out=tmp_path / "file" / "run")


@pytest.mark.parametrize(
    ("sections", "words", "kind"),
    [
        ({"algorithm": {"batch_size": 5000}}, "algorithm.batch_size = 5000", ConfigError),
        ({"evaluate": {"metrics": ["auk"]}}, "unknown metric 'auk'", ModelError),
        ({"evaluate": {"metrics": ["rmse"]}}, "metric 'rmse' does not fit", ModelError),
        ({"evaluate": {"targets": ["f1=0.5"]}}, "evaluate.targets has f1>=0.5, which is not measured", ConfigError),
        ({"evaluate": {"targets": []}, "run": {"stop_at_targets": True}}, "run.stop_at_targets = true", ConfigError),
        ({"run": {"device": "warp"}}, "run.device = 'warp' cannot be used", ConfigError),
        ({"run": {"device": "cuda"}}, "run.device = 'cuda' cannot be used", ConfigError),
        ({"network": {"slow": {"c/0": 2.0}}}, "network.slow has 'c/0', no silo 'c'", ConfigError),
        ({"network": {"slow": {"a/3": 2.0}}}, "clients of 'a' are a/0 to a/2", ConfigError),
        ({"federation": {"silos": [{"name": "x/y", "groups": ["mean"]}]}}, "it names a file", ConfigError),
        ({"model": {"outputs": 4}}, "embeddings of width 4, the sum needs 1", ModelError),
        ({"model": {"loss": "squared"}}, "loss 'squared' is for regression labels", ModelError),
        ({"model": {"blocks": {"z": {"block": "mlp"}}}}, "model.blocks names 'z', which is not a silo", ModelError),
        (
            {"model": {"fusion": "head", "head_holder": "z"}},
            "model.head_holder is 'z', which is not a silo",
            ModelError,
        ),
    ],
)
def test_refused_before_anything_is_written(
    make_config: MakeConfig, out: Path, tmp_path: Path, sections: dict[str, Any], words: str, kind: type[Exception]
) -> None:
    if words.startswith("run.device = 'cuda'") and torch.cuda.is_available():
        pytest.skip("this machine has the device")
    with pytest.raises(kind) as caught:
        train(make_config(**sections), out=out)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_bug_is_not_hidden(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Simulator) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(Simulator, "run_round", broken)
    with pytest.raises(ZeroDivisionError):
        train(make_config(), out=out)
    assert not out.exists()


def test_signals_are_given_back(make_config: MakeConfig, out: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    train(make_config(), out=out, watcher=StopAt(2))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
