"""Output that nobody reads any more: training goes on, other commands end quietly as other tools do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import environment
from tests.support.killed_runs import CONFIG


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "small.toml").write_text(CONFIG.replace("rounds = 60", "rounds = 20"))
    return folder


def unread(home: Path, *arguments: str, lines: int, both: bool = False) -> tuple[int, str]:
    """Exit code and errors of a command of whose output (with its errors, if `both`) so many lines are read."""
    with subprocess.Popen(
        [sys.executable, "-m", "crosshatch", *arguments],
        cwd=home, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT if both else subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        err = "" if process.stderr is None else process.stderr.read()
    return process.returncode, err


@pytest.mark.parametrize("lines", [0, 1])
def test_training_goes_on(home: Path, lines: int) -> None:
    out = f"after{lines}"
    assert unread(home, "train", "small.toml", "--out", out, lines=lines) == (0, "")
    assert json.loads((home / out / "summary.json").read_text())["rounds"] == 20
    assert (home / out / "report.html").is_file()


def test_divergence_is_kept_where_nobody_reads_of_it(home: Path) -> None:
    settings = ("--set", "algorithm.step_size=1e30", "--set", "evaluate.every=20")
    code, _ = unread(home, "train", "small.toml", "--out", "bad", *settings, lines=0, both=True)
    assert code == 1
    assert "diverged" in json.loads((home / "bad" / "summary.json").read_text())


@pytest.mark.parametrize("command", [("compare", "one", "one"), ("datasets",), ("plan", "small.toml", "--json")])
def test_what_only_prints_ends(home: Path, command: tuple[str, ...]) -> None:
    if command[0] == "compare" and not (home / "one").exists():
        subprocess.run(
            [sys.executable, "-m", "crosshatch", "train", "small.toml", "--out", "one", "--quiet"],
            cwd=home, env=environment(), check=True,
        )  # fmt: skip
    assert unread(home, *command, lines=0) == (141, "")
