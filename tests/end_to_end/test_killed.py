"""Killed at any moment and resumed: the same model, bit for bit. Ctrl-C: a checkpoint and how to go on."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.child import Child
from tests.support.command_line import environment
from tests.support.killed_runs import CONFIG


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


def rows(path: Path) -> list[dict[str, float]]:
    found = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    # the measured time of a step differs from run to run, and with it the simulated seconds
    return [{k: v for k, v in row.items() if k not in ("wall_seconds", "sim_seconds")} for row in found]


def test_killed_at_random_points(home: Path) -> None:
    arguments = ("train", "small.toml", "--resume", "--out")
    assert Child(*arguments, "whole", cwd=home).wait() == 0
    chance = random.Random(11)
    codes = []
    # Each start is killed some evaluations after it began, and a random while of computing later.
    for _ in range(8):
        child = Child(*arguments, "parted", cwd=home)
        child.wait_for_evaluations(chance.randint(1, 10))
        for _ in range(chance.randrange(200_000)):
            pass
        codes.append(child.kill())
    assert codes.count(-signal.SIGKILL) >= 5, codes
    assert Child(*arguments, "parted", cwd=home).wait() == 0
    files = sorted(path.name for path in (home / "whole" / "model").iterdir())
    assert files == ["model.json", "silo1.json", "silo1.safetensors", "silo2.json", "silo2.safetensors"]
    for name in files:
        assert (home / "parted" / "model" / name).read_bytes() == (home / "whole" / "model" / name).read_bytes()
    assert rows(home / "parted") == rows(home / "whole")
    ours, theirs = (json.loads((home / name / "summary.json").read_text()) for name in ("parted", "whole"))
    for key in ("final", "best", "bytes", "bytes_by_link", "bytes_by_exchange", "rounds"):
        assert ours[key] == theirs[key]


def test_killed_before_the_first_evaluation(home: Path) -> None:
    """Whatever of the folder is there by then, `--resume` begins anew or goes on."""
    chance = random.Random(12)
    for _ in range(4):
        child = Child("train", "small.toml", "--resume", "--out", "parted", "--set", "run.rounds=3", cwd=home)
        for _ in range(chance.randrange(3_000_000)):
            pass
        child.kill()
    assert Child("train", "small.toml", "--resume", "--out", "parted", "--set", "run.rounds=3", cwd=home).wait() == 0
    assert [row["round"] for row in rows(home / "parted")] == [0, 1, 2, 3]
    assert not list(home.rglob("*.partial"))


def test_asked_to_stop(home: Path) -> None:
    arguments = (
        "train",
        "small.toml",
        "--out",
        "one",
        "--set",
        "run.rounds=100000",
        "--set",
        "run.checkpoint_every=90000",
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "crosshatch", *arguments],
        cwd=home, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        next(line for line in process.stdout if " 3/100000 " in line)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate()
    finally:
        process.kill()
    assert process.returncode == 130
    assert err.count("\n") == 1, err
    assert err.startswith("stopped after round ")
    done = int(err.split("round ")[1].split(";")[0])
    assert done >= 3
    # what it says goes on from there
    said = shlex.split(err.split("go on with: ")[1])
    assert said[:2] == ["crosshatch", "train"]
    again = Child(*said[1:], cwd=home)
    again.wait_for_evaluations(2)
    again.kill()
    assert rows(home / "one")[-1]["round"] > done
