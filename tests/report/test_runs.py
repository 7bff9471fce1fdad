"""Reading run directories, whole, unfinished and broken."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from crosshatch.errors import RunError
from crosshatch.report.runs import read_run, read_runs
from tests.support.written_runs import WriteRun, curve


def test_finished_run(write_run: WriteRun) -> None:
    path = write_run("TDCD", q=10, bytes_per_round=80_000)
    run = read_run(path)
    assert (run.name, run.algorithm, run.finished, run.path) == ("TDCD", "tdcd", True, path)
    assert list(run.metrics) == curve(10, 80_000)
    assert run.metric_names == ("train_loss", "auc", "loss")
    assert run.config["algorithm"] == {"name": "tdcd", "local_steps": 10}
    assert run.config_text == (path / "config.toml").read_text()
    assert run.summary == json.loads((path / "summary.json").read_text())
    assert [silo.clients for silo in run.facts.federation.silos] == [100, 3]


def test_unfinished_run_has_its_name_from_the_config(write_run: WriteRun) -> None:
    run = read_run(write_run("slow one", finished=False))
    assert (run.name, run.algorithm, run.finished, run.summary) == ("slow one", "tdcd", False, {})


def test_without_config_the_directory_is_the_name(write_run: WriteRun) -> None:
    path = write_run("x", directory="here", finished=False)
    (path / "config.toml").unlink()
    assert (read_run(path).name, read_run(path).config) == ("here", {})


@pytest.mark.parametrize("cut", range(1, 40))
def test_half_written_last_line_is_ignored(write_run: WriteRun, cut: int) -> None:
    path = write_run("cut", finished=False)
    line = json.dumps({"round": 42, "bytes": 1, "sim_seconds": 1.0, "note": "größer"}, ensure_ascii=False).encode()
    with (path / "metrics.jsonl").open("ab") as file:
        file.write(line[:cut])
    assert list(read_run(path).metrics) == curve(10, 80_000)


def test_last_line_may_lack_its_newline(write_run: WriteRun) -> None:
    path = write_run("whole", finished=False)
    text = (path / "metrics.jsonl").read_text()
    (path / "metrics.jsonl").write_text(text.rstrip("\n"))
    assert list(read_run(path).metrics) == curve(10, 80_000)


def test_lines_that_were_lost_are_noticed(write_run: WriteRun) -> None:
    path = write_run("short")
    lines = (path / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (path / "metrics.jsonl").write_bytes(b"".join(lines[:-1]))
    with pytest.raises(RunError, match="ends at round 38, and by its summary the run has 40: lines were lost"):
        read_run(path)


def test_null_is_not_a_number(write_run: WriteRun) -> None:
    rows = [{"round": 0, "bytes": 0, "sim_seconds": 0, "train_loss": None, "auc": 0.5, "phase": "x", "done": True}]
    row = read_run(write_run("null", rows=rows, finished=False)).metrics[0]
    assert math.isnan(row["train_loss"])
    assert set(row) == {"round", "bytes", "sim_seconds", "train_loss", "auc"}


def test_equal_names_are_told_apart(write_run: WriteRun) -> None:
    paths = [write_run("same", directory="one"), write_run("same", directory="two"), write_run("other")]
    assert [run.name for run in read_runs(paths)] == ["same (one)", "same (two)", "other"]
    (paths[0].parent / "deep").mkdir()
    twin = paths[0].rename(paths[0].parent / "deep" / "two")
    assert [run.name for run in read_runs([twin, paths[1]])] == [f"same ({twin})", f"same ({paths[1]})"]


def test_one_run_named_twice_is_numbered(write_run: WriteRun) -> None:
    path, other = write_run("same", directory="one"), write_run("other")
    assert [run.name for run in read_runs([path, path])] == ["same (1)", "same (2)"]
    assert [run.name for run in read_runs([path, other, path])] == ["same (1)", "other", "same (2)"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("metrics.jsonl", None, "has no metrics.jsonl"),
        ("metrics.jsonl", "", "no complete line"),
        ("metrics.jsonl", '{"round": 1', "no complete line"),
        ("metrics.jsonl", '{"round": 1\n{"round": 2, "bytes": 0, "sim_seconds": 0}\n', "line 1 is not JSON"),
        ("metrics.jsonl", "[1]\n", "line 1 is not a JSON object"),
        ("metrics.jsonl", '{"round": 1}\n', "line 1 has no number for bytes, sim_seconds"),
        ("summary.json", "{", "summary.json is not JSON"),
        ("summary.json", "[]", "not a JSON object"),
        ("summary.json", '{"rounds": "many"}', r"rounds"),
        ("config.toml", "a = ", "config.toml is not TOML"),
    ],
)
def test_broken_files(write_run: WriteRun, file: str, content: str | None, message: str) -> None:
    path = write_run("broken")
    if content is None:
        (path / file).unlink()
    else:
        (path / file).write_text(content)
    with pytest.raises(RunError, match=message) as caught:
        read_run(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "absent"):
        with pytest.raises(RunError, match="is not a directory"):
            read_run(path)


def test_reports_need_no_torch_to_start() -> None:
    code = (
        "import sys, crosshatch.report.page, crosshatch.report.pooled; "
        "print({'torch', 'numpy', 'sklearn', 'polars'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
