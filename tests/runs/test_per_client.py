"""`evaluate.per_client` in a run: what the summary says, of which round, and what is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crosshatch.cli import main
from crosshatch.errors import CrosshatchError
from crosshatch.report.runs import read_run
from crosshatch.runs.config import decode_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.runs.trained.load_run import load_run
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt

ASKED = {"per_client": True}


def summary(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return found


def test_the_summary_has_the_spread(make_config: MakeConfig, out: Path) -> None:
    config = make_config(evaluate=ASKED)
    outcome = train(config, out=out)
    part = summary(out)["per_client"]
    assert part == outcome.summary["per_client"]
    assert part["round"] == 6
    assert list(part["silos"]) == ["a", "b"]
    prepared = prepare(config, folder=None)
    for _ in range(6):
        prepared.simulator.run_round()
    assert part["silos"] == prepared.simulator.evaluate_clients()
    assert read_run(out).facts.per_client.silos["a"].metrics["auc"].clients == 3


def test_all_else_stays_as_it_is(make_config: MakeConfig, tmp_path: Path) -> None:
    train(make_config(), out=tmp_path / "plain")
    train(make_config(evaluate=ASKED), out=tmp_path / "asked")
    one, other = summary(tmp_path / "plain"), summary(tmp_path / "asked")
    assert "per_client" not in one
    del other["per_client"], one["wall_seconds"], other["wall_seconds"]
    assert one == other
    for silo in ("a", "b"):
        files = [tmp_path / run / "model" / f"{silo}.safetensors" for run in ("plain", "asked")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_of_the_best_round_where_there_is_one(make_config: MakeConfig, out: Path) -> None:
    config = make_config(
        data={"validation": 0.3},
        algorithm={"step_size": 2.0, "local_steps": 10},
        evaluate=ASKED | {"every": 1, "metrics": ["accuracy"], "targets": []},
        run={"rounds": 12},
    )
    train(config, out=out)
    part = summary(out)["per_client"]
    assert part["round"] == summary(out)["best_round"]["round"] < 12
    # the clients' accuracies, put together, are that of the model which predictions take
    spread = part["silos"]["a"]["metrics"]["accuracy"]
    right = sum(one["samples"] * one["value"] for one in spread["worst"])
    frame = load_run(out).predict().frame
    test = prepare(config, folder=None).simulator.data.y_test
    assert right == pytest.approx(sum(int(c) == int(y) for c, y in zip(frame["class"], test, strict=True)))


def test_a_resumed_run_says_the_same(make_config: MakeConfig, tmp_path: Path) -> None:
    config = make_config(evaluate=ASKED, data={"validation": 0.3})
    train(config, out=tmp_path / "whole")
    train(config, out=tmp_path / "parted", watcher=StopAt(3))
    train(config, out=tmp_path / "parted", resume=True)
    assert summary(tmp_path / "whole")["per_client"] == summary(tmp_path / "parted")["per_client"]


def test_clients_that_are_values_of_a_column(tmp_path: Path, out: Path) -> None:
    rows = [f"{i},{i * 7 % 13},{i * 5 % 11},{'north' if i % 3 else 'south'},{i % 2}" for i in range(120)]
    (tmp_path / "people.csv").write_text("\n".join(["id,x,z,ward,y", *rows]))
    tables = {
        "data": {"path": str(tmp_path / "people.csv"), "id": "id", "label": "y", "leave_out": ["ward"]},
        "federation": {"silos": 2, "samples": {"kind": "column", "column": "ward"}},
        "algorithm": {"name": "tdcd"},
        "evaluate": ASKED,
        "run": {"name": "wards", "rounds": 2, "threads": 1},
    }
    train(decode_config(tables), out=out)
    worst = summary(out)["per_client"]["silos"]["silo1"]["metrics"]["accuracy"]["worst"]
    assert {one["client"]: one["value_of_column"] for one in worst} == {"silo1/0": "north", "silo1/1": "south"}


CONFIG = """
[data]
name = "wine"
[federation]
{federation}
[algorithm]
{algorithm}
[evaluate]
{evaluate}
[run]
rounds = 2
threads = 1
"""


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"evaluate": "per_client = 'yes'"}, "evaluate.per_client = 'yes': expected true or false"),
        ({"evaluate": "per_clients = true"}, "did you mean 'per_client'?"),
        ({}, "evaluate.per_client = true: every silo is a single client"),
        ({"algorithm": "name = 'mtcd'\ntokens = 1"}, "evaluate.per_client = true: every silo is a single client"),
        ({"algorithm": "name = 'central'"}, "evaluate.per_client = true: every silo is a single client"),
        ({"federation": "clients = 30", "algorithm": "name = 'tdcd'"}, "no client has 5 test samples, the most are 2"),
        (
            {"federation": "clients = 3", "algorithm": "name = 'tdcd'", "evaluate": "metrics = ['suboptimality']"},
            "suboptimality is about the training objective: add another of evaluate.metrics",
        ),
    ],
)
def test_refused_before_anything_starts(
    changes: dict[str, str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sections = {"federation": "", "algorithm": "name = 'fedbcd'", "evaluate": ""} | changes
    if "per_client" not in sections["evaluate"]:
        sections["evaluate"] += "\nper_client = true"
    path = tmp_path / "one.toml"
    path.write_text(CONFIG.format(**sections))
    with pytest.raises(SystemExit) as ended:
        main(["train", str(path), "--out", str(tmp_path / "run")])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert reason in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_an_own_metric_that_cannot_take_few_samples_says_so_at_once(
    make_config: MakeConfig, tmp_path: Path, out: Path
) -> None:
    (tmp_path / "mine.py").write_text(
        "def fussy(scores, y, loss):\n"
        "    if len(y) < 100:\n"
        "        raise ValueError('too few')\n"
        "    return 0.5\n"
        "fussy.higher_is_better = True\n"
    )
    metrics = [f"{tmp_path / 'mine.py'}:fussy", "auc"]
    train(make_config(evaluate={"metrics": metrics}), out=tmp_path / "plain")
    with pytest.raises(CrosshatchError, match="too few"):
        train(make_config(evaluate=ASKED | {"metrics": metrics}), out=out)
    assert not out.parent.exists()


def test_the_command_says_how_clients_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "one.toml"
    path.write_text(CONFIG.format(federation="clients = 3", algorithm="name = 'tdcd'", evaluate="per_client = true"))
    with pytest.raises(SystemExit) as ended:
        main(["train", str(path), "--out", "run"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    spread = summary(tmp_path / "run")["per_client"]["silos"]["silo1"]["metrics"]["accuracy"]
    assert f"accuracy of the clients of silo1 {spread['min']:.4g} to {spread['max']:.4g}" in said
    assert "How clients differ" in (tmp_path / "run" / "report.html").read_text()


def test_it_may_be_asked_for_later(make_config: MakeConfig, tmp_path: Path) -> None:
    train(make_config(), out=tmp_path / "late", watcher=StopAt(3))
    train(make_config(evaluate=ASKED), out=tmp_path / "late", resume=True)
    train(make_config(evaluate=ASKED), out=tmp_path / "early")
    assert summary(tmp_path / "late")["per_client"] == summary(tmp_path / "early")["per_client"]
