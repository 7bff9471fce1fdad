"""The proof that nothing changed: its configs cover what there is, and the last bit counts."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from benchmarks import same_configs, same_results
from benchmarks.same_configs import CONFIGS, tables
from benchmarks.same_results import CHECKPOINT, KEPT, compare, keep, main, write
from crosshatch.protocol.names import CODED
from crosshatch.runs.config import decode_config
from crosshatch.runs.config_names import ALGORITHMS, COMPRESSED, NETWORKS

NAME = "tdcd_held_each_round"


@pytest.fixture
def twice(tmp_path: Path) -> tuple[Path, Path]:
    """The results of one config, written twice."""
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        write(folder, [NAME], report=lambda _: None)
    return folders


def keep_again(run: Path) -> None:
    """As if the run had come out as its files now are."""
    (run / KEPT).write_text(json.dumps(keep(run)), encoding="utf-8")


def test_configs_cover_what_there_is() -> None:
    configs = [tables(name) for name in CONFIGS]
    assert len(configs) == 31
    assert all(decode_config(one).run.threads == 1 for one in configs)
    assert {one["algorithm"]["name"] for one in configs} == {*ALGORITHMS, *COMPRESSED}
    assert {exchange for one in configs for exchange in one["codecs"]} == set(CODED)
    codecs = " ".join(codec for one in configs for codec in one["codecs"].values())
    for word in ("half", "topk", "randomk", "quantise", " | ", "ef(", "accumulate", "unbiased"):
        assert word in codecs
    assert {one["run"].get("strategy", "auto") for one in configs} == {"auto", "loop", "stacked", "gram"}
    assert {one["model"]["block"].rpartition(":")[2] for one in configs} == {"linear", "mlp", "cnn", "lstm", "Dropping"}
    assert {one["network"]["kind"] for one in configs} == set(NETWORKS)
    assert "measure" not in json.dumps(configs), "what a machine measures differs from run to run"


def test_runs_are_the_same_whatever_the_clock_says(twice: tuple[Path, Path]) -> None:
    run = twice[1] / NAME
    summary = json.loads((run / "summary.json").read_text())
    (run / "summary.json").write_text(json.dumps(summary | {"wall_seconds": 99.0, "versions": {}}))
    keep_again(run)
    assert compare(*twice) == {NAME: None}
    assert main(["compare", *map(str, twice)]) == 0


def test_one_weight_counts(twice: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    run = twice[1] / NAME
    path = run / CHECKPOINT
    metadata = {"state": json.dumps({"simulator": {}})}
    tensors = load_file(path)
    tensors["block.0.1"][3] += np.float32(0.25)
    save_file(tensors, path, metadata)
    kept = keep(run)
    kept[CHECKPOINT] |= {k: v for k, v in keep(twice[0] / NAME)[CHECKPOINT].items() if not k.startswith("tensor ")}
    (run / KEPT).write_text(json.dumps(kept))
    found = compare(*twice)[NAME]
    assert found is not None
    assert found.startswith(f"{CHECKPOINT}: tensor block.0.1: float32 21 ")
    assert found.endswith("(by 0.25 at most)")
    assert main(["compare", *map(str, twice)]) == 1
    assert "0 of 1 are the same" in capsys.readouterr().out


def test_one_bit_of_a_metric_counts(twice: tuple[Path, Path]) -> None:
    run = twice[1] / NAME
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows[1]["train_loss"] = float(np.nextafter(rows[1]["train_loss"], 1))
    (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    keep_again(run)
    found = compare(*twice)[NAME]
    assert found is not None
    assert found.startswith("metrics.jsonl: evaluation 1.train_loss: 0.1")
    assert "relative" in found


def test_messages_of_every_exchange_are_kept(twice: tuple[Path, Path]) -> None:
    kept = keep(twice[0] / NAME)[CHECKPOINT]
    for exchange in ("broadcast", "share", "derivatives", "average"):
        assert kept[f"simulator.meter.exchanges.{exchange}.0"] > kept[f"simulator.meter.exchanges.{exchange}.1"] > 0


def test_missing_results_are_a_difference(twice: tuple[Path, Path], tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    assert "absent" in str(compare(twice[0], empty)[NAME])
    assert main(["compare", str(empty), str(empty)]) == 2
    assert main(["write", str(empty), "--only", "nothing"]) == 2


@pytest.mark.parametrize("module", [same_configs, same_results])
def test_examples(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
