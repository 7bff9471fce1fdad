"""STCD, MTCD and DCPA from a config: read, written back, run, resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.errors import ConfigError
from crosshatch.graphs import Graph
from crosshatch.runs.config import config_text, decode_config, encode_config, read_config
from crosshatch.runs.train import train
from crosshatch.schedules import Constant, InverseSqrt

CONFIG = """
[data]
name = "wine"
positive = 0
[federation]
silos = 4
[model]
l1 = 0.5
[algorithm]
name = "mtcd"
tokens = 2
local_steps = 3
hops_between_averages = 5
graph = {kind = "ring"}
[evaluate]
every = 4
metrics = ["suboptimality", "auc"]
targets = ["suboptimality<=0.5"]
[run]
rounds = 12
threads = 1
precision = "float64"
"""


def algorithm(table: dict[str, Any]) -> Any:
    tables = {"data": {"name": "wine"}, "algorithm": table, "run": {"rounds": 1, "name": "a"}}
    config = decode_config(tables)
    again = decode_config(encode_config(config))
    assert again.algorithm == config.algorithm
    return config.algorithm


def test_settings_are_read_and_written() -> None:
    assert algorithm({"name": "stcd"}) == STCD()
    graph = {"kind": "connectivity", "ratio": 0.4, "seed": 7}
    assert algorithm({"name": "stcd", "step_size": "auto", "graph": graph}) == STCD(
        graph=Graph("connectivity", ratio=0.4, seed=7)
    )
    assert algorithm({"name": "mtcd", "step_size": 1e-5, "meeting": "average"}) == MTCD(
        step_size=Constant(1e-5), meeting="average"
    )
    decaying = {"kind": "inverse_sqrt", "value": 0.1}
    assert algorithm({"name": "mtcd", "step_size": decaying}) == MTCD(step_size=InverseSqrt(0.1))
    assert algorithm({"name": "dcpa", "step_size": 0.01, "dual_step": 0.1}) == DCPA(0.01, 0.1)


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"name": "stcd", "tokens": 2}, "unknown key algorithm.tokens"),
        ({"name": "mtcd", "graph": {"kind": "circle"}}, r"algorithm.graph.kind = 'circle'"),
        ({"name": "mtcd", "graph": {"kind": "path", "size": 3}}, r"unknown key algorithm.graph.size"),
        ({"name": "dcpa", "step_size": {"kind": "constant", "value": 1.0}}, r"algorithm.step_size"),
    ],
)
def test_what_is_refused(table: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        algorithm(table)


def test_an_edge_list_is_found_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(CONFIG.replace('{kind = "ring"}', '{kind = "file", file = "edges.txt"}'))
    config = read_config(tmp_path / "a.toml")
    assert isinstance(config.algorithm, MTCD)
    assert config.algorithm.graph.file == str(tmp_path / "edges.txt")
    assert str(tmp_path / "edges.txt") in config_text(config)


@pytest.mark.parametrize("name", ["mtcd", "stcd", "dcpa"])
def test_a_run_and_its_resumption(name: str, tmp_path: Path) -> None:
    text = CONFIG.replace('"mtcd"', f'"{name}"')
    if name != "mtcd":
        text = text.replace("tokens = 2\n", "").replace("hops_between_averages = 5\n", "")
    text = text.replace("local_steps = 3\n", "") if name == "dcpa" else text
    (tmp_path / "a.toml").write_text(text)
    whole = train(read_config(tmp_path / "a.toml"), out=tmp_path / "whole")
    train(read_config(tmp_path / "a.toml", ["run.rounds=7"]), out=tmp_path / "parts")
    parts = train(read_config(tmp_path / "a.toml"), out=tmp_path / "parts", resume=True)
    assert parts.finished
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    last = json.loads((tmp_path / "parts" / "metrics.jsonl").read_text().splitlines()[-1])
    assert {**rows[-1], "wall_seconds": 0} == {**last, "wall_seconds": 0}
    assert [row["round"] for row in rows] == [0, 4, 8, 12]
    assert rows[0]["suboptimality"] == pytest.approx(1.0)
    assert rows[-1]["suboptimality"] < 0.9
    assert all(row["communications"] == row["messages"] for row in rows)
    graph = whole.summary["federation"]["graph"]
    assert graph["edges"] == [[0, 1], [0, 3], [1, 2], [2, 3]]
    if name == "mtcd":
        assert (graph["tokens"], graph["server"], sum(graph["visits"])) == (2, True, 24)
    arrival = whole.summary["targets"]["suboptimality<=0.5"]
    assert arrival is None or arrival["communications"] >= 0
