"""Parts of a user's own in a config: like built-in ones in runs, resumed runs, reports and predictions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosshatch import compare_runs, load_run, read_config, read_run, train, write_report
from crosshatch.errors import CrosshatchError, RunError
from crosshatch.runs.config import decode_config, encode_config
from tests.runs.own_parts import BUILT_IN, CONFIG, SOURCE


@pytest.fixture(name="config")
def config_of_own_parts(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(SOURCE)
    (tmp_path / "own.toml").write_text(CONFIG)
    (tmp_path / "known.toml").write_text(BUILT_IN)
    return tmp_path / "own.toml"


def rows(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_own_parts_do_what_the_same_built_in_ones_do(config: Path, tmp_path: Path) -> None:
    train(read_config(config), out=tmp_path / "own")
    train(read_config(tmp_path / "known.toml"), out=tmp_path / "known")
    for own, known in zip(rows(tmp_path / "own"), rows(tmp_path / "known"), strict=True):
        assert own["train_loss"] == pytest.approx(known["train_loss"], rel=1e-6)
        assert own["bytes"] == known["bytes"]
        assert own["accuracy"] == known["accuracy"] == own["hits"] == pytest.approx(1 - own["misses"])


def test_the_run_directory_is_complete(config: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    outcome = train(read_config(config), out=run)
    assert (run / "parts" / "mine.py").read_text() == SOURCE
    assert outcome.summary["parts"] == {"mine.py": sha256(SOURCE.encode()).hexdigest()}
    assert outcome.summary["algorithm"] == "mine.py:Mine"
    assert outcome.summary["peak_on_test_rows"]["hits"]["value"] == max(row["hits"] for row in rows(run))
    assert outcome.summary["peak_on_test_rows"]["misses"]["value"] == min(row["misses"] for row in rows(run))
    assert outcome.summary["targets"].keys() == {"hits>=0.5", "misses<=0.2"}
    tables = tomllib.loads((run / "config.toml").read_text())
    assert tables["algorithm"]["name"] == "parts/mine.py:Mine"
    assert tables["model"]["block"] == "parts/mine.py:Net"
    assert tables["model"]["loss"] == "parts/mine.py:Plain"
    assert tables["codecs"]["share"] == "parts/mine.py:Rounded(digits=12)"
    assert tables["evaluate"]["metrics"] == ["accuracy", "parts/mine.py:hits", "parts/mine.py:misses"]
    assert tables["evaluate"]["higher_is_better"] == {"hits": True, "misses": False}


def test_a_fresh_process_predicts_from_the_directory_alone(config: Path, tmp_path: Path) -> None:
    train(read_config(config), out=tmp_path / "run")
    expected = load_run(tmp_path / "run").predict()
    shutil.move(tmp_path / "run", tmp_path / "moved")
    (tmp_path / "mine.py").unlink()
    config.unlink()
    program = "import sys, crosshatch; print(crosshatch.load_run(sys.argv[1]).predict().csv.decode(), end='')"
    ran = subprocess.run([sys.executable, "-c", program, tmp_path / "moved"], capture_output=True, check=True)
    assert ran.stdout == expected.csv
    again = train(read_config(tmp_path / "moved" / "config.toml"), out=tmp_path / "again")
    assert again.summary["final"] == json.loads((tmp_path / "moved" / "summary.json").read_text())["final"]


def test_resumed_it_ends_with_the_same_bits(config: Path, tmp_path: Path) -> None:
    train(read_config(config), out=tmp_path / "whole")
    train(read_config(config, ["run.rounds=4"]), out=tmp_path / "part")
    outcome = train(read_config(config), out=tmp_path / "part", resume=True)
    assert outcome.finished
    for name in ("silo1.safetensors", "silo2.safetensors", "silo1.json"):
        assert (tmp_path / "part" / "model" / name).read_bytes() == (tmp_path / "whole" / "model" / name).read_bytes()
    copy = read_config(tmp_path / "part" / "config.toml", ["run.rounds=8"])
    assert train(copy, out=tmp_path / "part", resume=True).round == 8


def test_resume_with_a_changed_file_is_refused(config: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train(read_config(config, ["run.rounds=4"]), out=run)
    (tmp_path / "mine.py").write_text(SOURCE + "\n# another thought\n")
    with pytest.raises(RunError, match=r"mine\.py was changed since the run in .* was started: undo that .*parts/mine"):
        train(read_config(config), out=run, resume=True)
    (run / "parts" / "mine.py").write_text(SOURCE + "\n# another thought\n")
    with pytest.raises(RunError, match=r"parts/mine\.py was changed since the run .* started: undo that, or choose"):
        train(read_config(run / "config.toml", ["run.rounds=6"]), out=run, resume=True)
    with pytest.raises(RunError, match="was changed since the run was made"):
        load_run(run)
    (run / "parts" / "mine.py").unlink()
    with pytest.raises(RunError, match=r"no file .*parts/mine\.py"):
        load_run(run)


def test_reports_know_which_way_is_better(config: Path, tmp_path: Path) -> None:
    for seed in (0, 1):
        train(read_config(config, [f"run.seed={seed}"]), out=tmp_path / f"seed{seed}")
    runs = [read_run(tmp_path / f"seed{seed}") for seed in (0, 1)]
    outcome = compare_runs(runs, ["hits=0.5", "misses=0.3"]).outcomes[0]
    assert outcome.algorithm == "mine.py:Mine"
    assert outcome.best["misses"].value == min(row["misses"] for row in runs[0].metrics)
    write_report(runs, tmp_path / "report.html", ["misses=0.3"])
    assert "at most 0.3" in (tmp_path / "report.html").read_text()


def test_own_metrics_choose_the_best_round(config: Path, tmp_path: Path) -> None:
    changes = ["data.validation=0.2", "evaluate.best_by=misses", "evaluate.every=1"]
    outcome = train(read_config(config, changes), out=tmp_path / "run")
    best = outcome.summary["best_round"]
    assert best["by"] == "validation_misses"
    assert best["validation_misses"] == min(row["validation_misses"] for row in rows(tmp_path / "run"))


def test_a_schedule_of_ones_own(config: Path, tmp_path: Path) -> None:
    changes = {"own": "{kind = 'mine.py:Falling', start = 0.2}", "known": "{kind = 'inverse_sqrt', value = 0.2}"}
    for name, schedule in changes.items():
        given = [f"algorithm.step_size={schedule}"]
        train(read_config(tmp_path / "known.toml", given), out=tmp_path / name)
    assert [row["train_loss"] for row in rows(tmp_path / "own")] == [
        row["train_loss"] for row in rows(tmp_path / "known")
    ]
    stored = tomllib.loads((tmp_path / "own" / "config.toml").read_text())["algorithm"]["step_size"]
    assert stored == {"kind": "parts/mine.py:Falling", "start": 0.2}
    assert config.is_file()


def test_written_back_and_read_again(config: Path) -> None:
    found = read_config(config)
    assert decode_config(encode_config(found)) == found


def test_two_files_of_one_name(config: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.py").write_text(SOURCE + "\nsecond = True\n")
    changes = ["model.blocks.silo2.block=other/mine.py:Net", "codecs.share=ef(other/mine.py:Rounded(2))"]
    outcome = train(read_config(config, changes), out=tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run" / "parts").iterdir()) == ["mine-2.py", "mine.py"]
    assert outcome.summary["parts"].keys() == {"mine.py", "mine-2.py"}
    tables = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert tables["model"]["blocks"]["silo2"]["block"] == "parts/mine-2.py:Net"
    assert tables["codecs"]["share"] == "ef(parts/mine-2.py:Rounded(digits=2))"
    assert train(read_config(config, [*changes, "run.rounds=7"]), out=tmp_path / "run", resume=True).finished


def test_an_algorithm_from_python(config: Path, tmp_path: Path) -> None:
    from tests.runs.python_algorithm import FromPython

    known = read_config(tmp_path / "known.toml")
    own: Any = FromPython(local_steps=3, batch_size=50)
    outcome = train(replace(known, algorithm=own), out=tmp_path / "run")
    assert outcome.summary["algorithm"] == "python_algorithm.py:FromPython"
    assert (tmp_path / "run" / "parts" / "python_algorithm.py").is_file()
    assert (
        train(read_config(tmp_path / "run" / "config.toml"), out=tmp_path / "b").summary["final"]
        == (outcome.summary["final"])
    )
    assert config.is_file()


def test_one_that_is_in_no_file(config: Path, tmp_path: Path) -> None:
    from tests.runs.python_algorithm import FromPython

    class Inner(FromPython):
        pass

    nowhere: Any = Inner()
    with pytest.raises(CrosshatchError, match="the algorithm Inner is not in a file"):
        train(replace(read_config(config), algorithm=nowhere), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_step_sizes_are_found_by_trials(config: Path, tmp_path: Path) -> None:
    outcome = train(read_config(config, ["algorithm.step_size=measure"]), out=tmp_path / "run")
    tables = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert isinstance(tables["algorithm"]["step_size"], float)
    assert np.isfinite(outcome.summary["final"]["train_loss"])
