"""The golden trajectories, run as `python -m crosshatch.testing.golden` does."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from crosshatch.testing.golden import main, read, run_case
from tests.support.command_line import environment

GOLDEN = Path(__file__).parents[1] / "golden"
KINDS = ("fedbcd_", "tdcd_", "hsgd_", "mtcd_", "stcd_")


def cases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((GOLDEN / "cases.json").read_text())["cases"]
    return found


def folder_with(path: Path, listed: list[dict[str, Any]]) -> Path:
    """A golden folder with other cases."""
    text = json.loads((GOLDEN / "cases.json").read_text())
    shutil.copy(GOLDEN / "tiny.npz", path)
    (path / "cases.json").write_text(json.dumps({**text, "cases": listed}))
    return path


NUMBERS = range(len(cases()))
NAMES = [case["name"] for case in cases()]


def test_every_kind_has_cases() -> None:
    assert {name.split("_")[0] + "_" for name in NAMES} == set(KINDS)
    assert len(set(NAMES)) == len(NAMES) == 16


@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-6), ("float32", 1e-4)])
def test_case(number: int, precision: str, tolerance: float) -> None:
    folder = read(GOLDEN)
    found = run_case(folder, folder.cases[number], getattr(torch, precision))
    assert isinstance(found, float), found
    assert found <= tolerance


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_all_cases_pass(precision: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(GOLDEN), "--precision", precision]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last == f"{len(NAMES)} passed, 0 failed, 0 unknown"
    assert [line.split()[:2] for line in lines] == [["ok", name] for name in NAMES]


def run_module(folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m crosshatch.testing.golden FOLDER`, as a process of its own."""
    command = [sys.executable, "-m", "crosshatch.testing.golden", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment())


@pytest.mark.parametrize(
    ("listed", "code", "last"),
    [
        (cases(), 0, f"{len(NAMES)} passed, 0 failed, 0 unknown"),
        ([{**cases()[-1], "loss": [1.01 * x for x in cases()[-1]["loss"]]}], 1, "0 passed, 1 failed, 0 unknown"),
        ([cases()[0], {**cases()[1], "name": "fedprox_plain"}], 3, "1 passed, 0 failed, 1 unknown"),
    ],
    ids=["good", "beyond", "unknown"],
)
def test_exit_code_of_the_module(listed: list[dict[str, Any]], code: int, last: str, tmp_path: Path) -> None:
    ran = run_module(folder_with(tmp_path, listed))
    assert (ran.returncode, ran.stdout.splitlines()[-1], ran.stderr) == (code, last, "")


def test_exit_code_of_the_module_without_a_folder(tmp_path: Path) -> None:
    ran = run_module(tmp_path / "nowhere")
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("prefix", KINDS)
def test_only_runs_the_named_cases(prefix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(GOLDEN), "--only", prefix]) == 0
    *lines, _ = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [name for name in NAMES if name.startswith(prefix)]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "fedprox_plain"},
        {"params": {**cases()[0]["params"], "momentum": 0.9}},
        {"params": {**cases()[0]["params"], "decay": "linear"}},
        {"loss": cases()[0]["loss"][:-1]},
    ],
)
def test_unknown_cases_are_reported(change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known, strange = cases()[1], {**cases()[0], **change}
    assert main([str(folder_with(tmp_path, [known, strange]))]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["ok", known["name"]]
    assert lines[1].split()[:2] == ["unknown", strange["name"]]
    assert lines[2] == "1 passed, 0 failed, 1 unknown"


@pytest.mark.parametrize("position", [0, 5, -1])
@pytest.mark.parametrize("number", NUMBERS, ids=NAMES)
def test_a_tampered_case_fails(number: int, position: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = cases()[number]
    loss = list(case["loss"])
    loss[position] *= 1 + 3e-6
    assert main([str(folder_with(tmp_path, [{**case, "loss": loss}]))]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.split()[:2] == ["FAIL", case["name"]]
    assert float(line.split()[2]) == pytest.approx(3e-6, rel=0.01)


def test_failing_counts_more_than_unknown(tmp_path: Path) -> None:
    wrong = {**cases()[0], "loss": [x + 1 for x in cases()[0]["loss"]]}
    assert main([str(folder_with(tmp_path, [wrong, {**cases()[0], "name": "other_one"}]))]) == 1


def test_a_case_that_lists_no_numbers_fails(tmp_path: Path) -> None:
    wrong = {**cases()[0], "loss": [float("nan")] * len(cases()[0]["loss"])}
    assert main([str(folder_with(tmp_path, [wrong]))]) == 1


def test_no_cases_at_all_is_no_success(tmp_path: Path) -> None:
    assert main([str(folder_with(tmp_path, []))]) == 1
    assert main([str(GOLDEN), "--only", "nothing"]) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # numpy leaves a cut archive open
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cases.json", None, "cases.json is absent"),
        ("tiny.npz", None, "tiny.npz is absent"),
        ("cases.json", b"{", "not a golden folder"),
        ("cases.json", b"{}", "not a golden folder"),
        ("cases.json", b"\xff\xfe", "not a golden folder"),
        ("tiny.npz", b"PK\x03\x04 cut", "not a golden folder"),
        ("tiny.npz", b"text", "not a golden folder"),
    ],
)
def test_a_bad_folder_gives_one_line_and_2(
    name: str, content: bytes | None, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_with(tmp_path, cases())
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main([str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert reason in captured.err


def test_an_absent_folder_gives_2(tmp_path: Path) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("broken", ["loss_fn", "Q", "lr", "rounds"])
def test_a_case_without_a_parameter_is_reported(broken: str, tmp_path: Path) -> None:
    parameters = {k: v for k, v in cases()[0]["params"].items() if k != broken}
    assert main([str(folder_with(tmp_path, [{**cases()[0], "params": parameters}]))]) == 3
