"""`[[network]]` as a list: the seconds of one training under each, exactly those of runs of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crosshatch import read_config, train
from crosshatch.errors import ConfigError
from crosshatch.runs.config import config_text, decode_config, encode_config

CONFIG = """
[data]
name = "breast_cancer"
[federation]
silos = 2
clients = 4
[algorithm]
name = "tdcd"
local_steps = 3
batch_size = 64
[evaluate]
every = 3
targets = ["auc=0.9"]
[run]
rounds = 7
threads = 1
"""
TEN, HUNDRED = "[{0}]\nt_comm = 10.0\n", "[{0}]\nt_comm = 100.0\nslow = {{silo1 = 3.0, 'silo2/1' = 2.5}}\n"
WIDE = """[{0}]
kind = "bandwidth"
step_seconds = 0.01
links = {{client-hub = {{latency = 0.05, up = 14.0, down = 110.0}}, hub-hub = {{latency = 0.01, up = 74.0}}}}
"""


def run(folder: Path, name: str, network: str, *changes: str, stop: int | None = None) -> tuple[list[Any], Any]:
    path = folder / f"{name}.toml"
    path.write_text(CONFIG + network)
    if stop is not None:
        train(read_config(path, [*changes, f"run.rounds={stop}"]), out=folder / name)
        train(read_config(path, changes), out=folder / name, resume=True)
    else:
        train(read_config(path, changes), out=folder / name)
    rows = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
    return rows, json.loads((folder / name / "summary.json").read_text())


GROUPS = ("federation.groups=2", "federation.clients=8", "algorithm.name=abcd", "algorithm.global_steps=6")
HELD = ("federation.labels=silo1",)


@pytest.mark.parametrize("changes", [(), HELD, GROUPS], ids=["shared", "held", "groups"])
def test_the_seconds_of_two_runs_exactly(tmp_path: Path, changes: tuple[str, ...]) -> None:
    both, summary = run(tmp_path, "both", "".join(text.format("[network]") for text in (TEN, HUNDRED, WIDE)), *changes)
    for number, text in ((1, TEN), (2, HUNDRED), (3, WIDE)):
        alone, told = run(tmp_path, f"alone{number}", text.format("network"), *changes)
        key = "sim_seconds" if number == 1 else f"sim_seconds_{number}"
        assert [row[key] for row in both] == [row["sim_seconds"] for row in alone]
        assert [row["train_loss"] for row in both] == [row["train_loss"] for row in alone]
        assert [row["bytes"] for row in both] == [row["bytes"] for row in alone]
        assert summary[key] == told["sim_seconds"]
        assert summary["targets"]["auc>=0.9"][key] == told["targets"]["auc>=0.9"]["sim_seconds"]
    assert "sim_seconds_2" not in summary["final"]


def test_a_run_that_goes_on_has_all_clocks(tmp_path: Path) -> None:
    networks = "".join(text.format("[network]") for text in (TEN, HUNDRED))
    whole, _ = run(tmp_path, "whole", networks)
    parts, _ = run(tmp_path, "parts", networks, stop=3)
    assert [row["sim_seconds_2"] for row in whole] == [row["sim_seconds_2"] for row in parts]


def test_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(CONFIG + TEN.format("[network]") + WIDE.format("[network]"))
    config = read_config(path)
    assert decode_config(encode_config(config)).network == config.network
    assert config_text(config).count("[[network]]") == 2


def test_where_there_can_be_one_only(tmp_path: Path) -> None:
    networks = TEN.format("[network]") * 2
    graph = ("algorithm.name=stcd", "algorithm.batch_size=", "federation.clients=1")
    with pytest.raises(ConfigError, match="network is a list of 2, but tokens walk on a graph"):
        run(tmp_path, "graph", networks, *graph)
    path = tmp_path / "measured.toml"
    path.write_text(CONFIG + TEN.format("[network]") + '[[network]]\nkind = "bandwidth"\nstep_seconds = "measure"\n')
    with pytest.raises(ConfigError, match="in a list of networks: give each a number"):
        read_config(path)
