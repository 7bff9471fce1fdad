"""Encrypted runs in their directories: what is written, run again, resumed, compared and reported."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from crosshatch import compare_runs, read_config, read_run, train, write_report
from crosshatch.report.printed_tables import print_comparison

CONFIG = """
[data]
name = "breast_cancer"
[federation]
labels = "b"
silos = [{ name = "a", span = [0, 10] }, { name = "b", span = [10, 30] }]
[algorithm]
name = "fedbcd"
local_steps = 3
batch_size = 176
division_seed = 5
[privacy]
encryption = "paillier"
key_bits = 2048
accept_leakage = true
[evaluate]
every = 1
targets = ["auc=0.9"]
[run]
rounds = 4
threads = 2
"""


def run(folder: Path, name: str, *changes: str, resume: bool = False, config: Path | None = None) -> Path:
    path = config or folder / "one.toml"
    if config is None:
        path.write_text(CONFIG)
    train(read_config(path, changes, name=name), out=folder / name, resume=resume)
    return folder / name


def test_a_division_is_drawn_once_and_kept(tmp_path: Path) -> None:
    """A run that goes on, and one of the resolved config, have the same batches; another run has others."""
    open_seed = CONFIG.replace("division_seed = 5\n", "")
    (tmp_path / "open.toml").write_text(open_seed)
    whole = run(tmp_path, "whole", config=tmp_path / "open.toml")
    seed = read_config(whole / "config.toml").algorithm.division_seed
    assert read_config(whole / "config.toml").algorithm.draw == "partition"
    assert seed is not None
    part = run(tmp_path, "part", "run.rounds=2", f"algorithm.division_seed={seed}", config=tmp_path / "open.toml")
    run(tmp_path, "part", config=tmp_path / "open.toml", resume=True)
    again = run(tmp_path, "again", config=whole / "config.toml")
    losses = [[row["train_loss"] for row in rows(path)] for path in (whole, part, again)]
    assert losses[0] == losses[1] == losses[2]
    other = run(tmp_path, "other", config=tmp_path / "open.toml")
    assert read_config(other / "config.toml").algorithm.division_seed != seed


def rows(path: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in row.items() if key != "wall_seconds"} for row in found]


def test_seconds_of_operations_are_measured_once_and_kept(tmp_path: Path) -> None:
    first = run(tmp_path, "first")
    seconds = read_config(first / "config.toml").privacy.seconds
    assert seconds is not None
    assert min(seconds.encrypt, seconds.multiply, seconds.pack, seconds.mask, seconds.decrypt) > 0
    again = run(tmp_path, "again", config=first / "config.toml")
    assert rows(again) == rows(first)


def test_a_resumed_run_charges_what_it_charged_before(tmp_path: Path) -> None:
    whole = run(tmp_path, "whole")
    seconds = read_config(whole / "config.toml").privacy.seconds
    assert seconds is not None
    part = tmp_path / "part"
    config = read_config(whole / "config.toml", ["run.rounds=2"])
    train(config, out=part)
    resumed = read_config(tmp_path / "one.toml", name=config.name)  # whose seconds are left out
    train(resumed, out=part, resume=True)
    assert rows(part) == rows(whole)


def test_real_ciphertexts_have_the_metrics_and_bytes_of_their_costs(tmp_path: Path) -> None:
    costs, real = run(tmp_path, "costs"), run(tmp_path, "real", "privacy.ciphertexts=real")
    apart = ("sim_seconds", "computing_seconds")
    same = [[{k: v for k, v in row.items() if k not in apart} for row in rows(path)] for path in (costs, real)]
    assert same[0] == same[1]
    kinds = [json.loads((path / "summary.json").read_text())["bytes_by_exchange"] for path in (costs, real)]
    assert kinds[0] == kinds[1]
    assert list(kinds[0]) == ["share", "derivatives", "masked_gradients", "read_gradients"]


def test_computing_and_messages_are_reported_apart(tmp_path: Path) -> None:
    path = run(tmp_path, "one")
    summary = json.loads((path / "summary.json").read_text())
    assert summary["computing_seconds"] + summary["communication_seconds"] == pytest.approx(summary["sim_seconds"])
    assert summary["communication_seconds"] == pytest.approx(4 * 4 * 5.0)  # four legs of half a round trip per round
    assert 3 < summary["targets"]["auc>=0.9"]["computing_seconds"] < summary["targets"]["auc>=0.9"]["sim_seconds"]
    assert "computing_seconds" not in summary["final"]
    result = compare_runs([read_run(path)], ["auc=0.9"])
    shown = StringIO()
    print_comparison(result, Console(file=shown, width=120))
    assert shown.getvalue().count("computing ") == 2
    assert shown.getvalue().count("messages ") == 2
    write_report([read_run(path)], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<small>computing " in page


def test_runs_in_clear_do_not_tell_them_apart(tmp_path: Path) -> None:
    path = run(
        tmp_path,
        "clear",
        "privacy.encryption=none",
        "privacy.key_bits=3072",
        "privacy.accept_leakage=false",
        "algorithm.draw=partition",
    )
    summary = json.loads((path / "summary.json").read_text())
    assert "computing_seconds" not in summary
    assert "computing_seconds" not in summary["targets"]["auc>=0.9"]
    assert all("computing_seconds" not in row for row in rows(path))
