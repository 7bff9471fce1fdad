"""Divergence through the real command line: exit codes, what is said, compared and shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.support.command_line import Command

CONFIG = """
[data]
name = "digits"
[federation]
split = "patches"
patches = [2, 2]
[model]
block = "mlp"
hidden = [8]
[algorithm]
name = "fedbcd"
local_steps = 20
step_size = 0.3
batch_size = 256
[evaluate]
every = 1
targets = ["accuracy=0.5"]
[run]
rounds = 6
threads = 1
"""


ROOT = """
from torch import nn

class Root(nn.Module):
    def __init__(self, input_shape, outputs):
        super().__init__()
        self.linear = nn.Linear(input_shape[0] * input_shape[1] * input_shape[2], outputs)

    def forward(self, x):
        out = self.linear(x.flatten(1))
        return out + (out * 0).abs().sqrt()
"""


@pytest.fixture
def quadrants(tmp_path: Path) -> Path:
    """Four silos that descend at the same time."""
    path = tmp_path / "quadrants.toml"
    path.write_text(CONFIG)
    return path


def test_a_run_that_diverges_ends_with_code_1(quadrants: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", quadrants, "--out", "runs/bad")
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    summary = json.loads(Path("runs/bad/summary.json").read_text())
    diverged = summary["diverged"]
    assert line.startswith(f"error: {diverged['why']}; the run is kept in runs/bad")
    assert diverged["why"].startswith(f"round {diverged['round']}: training diverged, the training loss is ")
    assert "4 silos descend at the same time, each as if the others stood still: use algorithm abcd" in line
    assert sorted(path.name for path in Path("runs/bad").iterdir()) == [
        "checkpoint", "config.toml", "fingerprint.json", "metrics.jsonl", "model", "report.html", "summary.json",
    ]  # fmt: skip
    assert f"bad diverged at round {diverged['round']}" in Path("runs/bad/report.html").read_text()


def test_numbers_no_longer_finite_before_the_second_evaluation(quadrants: Path, command: Command) -> None:  # noqa: F811
    """They end with code 1 like any divergence, and the step size is blamed before the algorithm."""
    settings = ("--set", "algorithm.step_size=1e30", "--set", "evaluate.every=6")
    ended = command("train", quadrants, "--out", "runs/broken", *settings)
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert "no longer finite, training diverged: lower algorithm.step_size (now 1e+30): even without" in line
    assert "abcd" not in line
    assert line.endswith("; the rounds before are kept in runs/broken")
    diverged = json.loads(Path("runs/broken/summary.json").read_text())["diverged"]
    assert line.startswith(f"error: {diverged['why']}")
    assert f"broken diverged at round {diverged['round']}" in Path("runs/broken/report.html").read_text()


def test_a_mistake_that_makes_numbers_infinite_is_no_divergence(quadrants: Path, command: Command) -> None:  # noqa: F811
    quadrants.with_name("block.py").write_text(ROOT)
    ended = command(
        "train", quadrants, "--out", "runs/mistake", "--set", "model.block=block.py:Root", "--set", "model.hidden="
    )
    assert ended.code == 2, ended.err
    assert "has a gradient that is NaN or infinite" in ended.err
    assert not Path("runs/mistake").exists()


def test_quiet_is_not_silent(quadrants: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", quadrants, "--quiet", "--set", "run.on_divergence=warn")
    assert ended.code == 0
    assert ended.out == ""
    assert ended.err.startswith("warning: round 5: training diverged, the training loss is ")


def test_warned_and_resumed(quadrants: Path, command: Command) -> None:  # noqa: F811
    into = ("--out", "runs/one")
    first = command("train", quadrants, *into)
    again = command("train", quadrants, *into, "--resume")
    assert (first.code, again.code) == (1, 1)
    assert first.err == again.err
    on = command("train", quadrants, *into, "--resume", "--set", "run.on_divergence=warn")
    assert on.code == 0, on.err
    assert on.err.startswith("warning: round ")
    at = re.search(r"it diverged at round (\d+)", on.out)
    assert at is not None
    summary = json.loads(Path("runs/one/summary.json").read_text())
    assert (summary["rounds"], summary["diverged"]["round"]) == (6, int(at[1]))


def test_an_unknown_answer_to_divergence(quadrants: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", quadrants, "--set", "run.on_divergence=ignore")
    assert ended.code == 2
    assert "run.on_divergence" in ended.err
    assert "'stop'" in ended.err
    assert "'warn'" in ended.err


def test_compare_and_report(quadrants: Path, command: Command) -> None:  # noqa: F811
    assert command("train", quadrants, "--out", "runs/bad").code == 1
    assert command("train", quadrants, "--out", "runs/good", "--set", "algorithm.name=abcd").code == 0
    table = command("compare", "runs/bad", "runs/good").out
    marked = [line for line in table.splitlines() if "bad (diverged at round" in line]
    assert len(marked) == 2  # totals, and the cost to reach the target
    assert "good (diverged" not in table
    assert command("report", "runs/bad", "runs/good", "--out", "both.html").code == 0
    page = Path("both.html").read_text()
    title = re.search(r"<h1>(.*?)</h1>", page)
    assert title is not None
    assert title[1].startswith("good reaches accuracy 0.5 with ")
    assert title[1].endswith("; bad diverged")
