"""Pairs of processes in one folder, at random moments, some of them killed: never a mixed file, one clear refusal."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crosshatch.runs.files import PARTIAL
from crosshatch.runs.one_writer import LOCK
from tests.support.command_line import environment
from tests.support.killed_runs import CONFIG

TRAIN = ("train", "small.toml", "--out", "out")
RESUME = (*TRAIN, "--resume")
SWEEP = (
    "sweep", "small.toml", "--out", "out", "--jobs", "1", "--grid", "algorithm.step_size=0.1,0.2",
    "--set", "run.rounds=20", "--choose", "last train_loss",
)  # fmt: skip
REPORT = ("report", "out")
PAIRS = {
    "train/train": (TRAIN, TRAIN),
    "train/resume": (TRAIN, RESUME),
    "sweep/sweep": (SWEEP, SWEEP),
    "report/report": (REPORT, REPORT),
    "train/report": (RESUME, REPORT),
}
LONGEST_OFFSET = 4.0  # seconds


@dataclass
class Command:
    """A command as a process of its own, with what it says on stderr."""

    process: subprocess.Popen[bytes]
    errors: Path
    killed: bool = False

    def kill(self) -> None:
        """With those it has started: it leads a group."""
        self.killed = self.process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> int | None:
        """Its exit code; None where it is still at work after so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(seconds)
        return None


Start = Callable[..., Command]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "small.toml").write_text(CONFIG.replace('step_seconds = "measure"', "step_seconds = 0.01"))
    begun: list[Command] = []

    def run(*arguments: str) -> Command:
        errors = tmp_path / f"errors{len(begun)}.txt"
        with errors.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "crosshatch", *arguments],
                cwd=home, env=environment(), stdout=subprocess.DEVNULL, stderr=file, start_new_session=True,
            )  # fmt: skip
        begun.append(Command(process, errors))
        return begun[-1]

    yield run
    for command in begun:
        command.kill()
        command.process.wait()


def content(out: Path) -> dict[str, Any]:
    """All that equal runs and sweeps have in common, by its place."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("*")):
        place = path.relative_to(out).as_posix()
        if path.name == "metrics.jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[place] = [{key: row[key] for key in row if key != "wall_seconds"} for row in rows]
        elif path.name in ("config.toml", "table.csv", "chosen.toml") or path.parent.name == "model":
            found[place] = path.read_bytes()
    return found


def check_refusal(command: Command, other: Command) -> None:
    """One line that says who has the folder, or that something is in it already."""
    (line,) = command.errors.read_text().splitlines()
    holder = f"error: another process is writing out: process {other.process.pid} on {socket.gethostname()}, "
    empty = ("has no metrics.jsonl", "has no complete line", "is not a directory")  # a report before there is a run
    assert line.startswith((holder, "error: the output folder out exists and is not empty")) or any(
        words in line for words in empty
    ), line


def try_pair(start: Start, home: Path, kind: str, chance: random.Random) -> None:
    """Two commands, the second after a while; perhaps one of them is killed; what is there in the end is whole."""
    first_words, second_words = PAIRS[kind]
    last = SWEEP if kind == "sweep/sweep" else RESUME
    if kind == "report/report":
        assert start(*TRAIN).wait() == 0
    first = start(*first_words)
    first.wait(chance.choice((0.0, chance.random(), LONGEST_OFFSET * chance.random())))
    second = start(*second_words)
    pair = (first, second)
    if chance.random() < 0.5:
        victim = chance.choice(pair)
        victim.wait(1.5 * LONGEST_OFFSET * chance.random())
        victim.kill()
    for command, other in (pair, pair[::-1]):
        code = command.wait()
        if code == 2:
            check_refusal(command, other)
        else:
            assert code == 0 or (command.killed and code == -signal.SIGKILL), command.errors.read_text()
    codes = [command.wait() for command in pair]
    assert codes != [2, 2], "each refused because of the other"
    if kind in ("train/train", "train/resume", "sweep/sweep") and not any(command.killed for command in pair):
        assert 0 in codes
    if kind == "train/train":
        assert codes.count(0) <= 1
    assert start(*last).wait() == 0  # whoever was killed goes on
    assert start("report", "out" if last is RESUME else "out/runs/step_size=0.1,seed=0").wait() == 0
    left = [path.name for path in home.rglob("*") if path.name == LOCK or path.name.endswith(PARTIAL)]
    assert left == []
    if last is RESUME:
        assert (home / "out" / "report.html").read_text().rstrip().endswith("</html>")
    (home / "out").rename(home / "kept")
    assert start(*(TRAIN if last is RESUME else SWEEP)).wait() == 0
    assert content(home / "kept") == content(home / "out")


@pytest.mark.parametrize(("kind", "seed"), [("train/train", 1), ("train/report", 2)])
def test_some_pairs(start: Start, tmp_path: Path, kind: str, seed: int) -> None:
    try_pair(start, tmp_path / "home", kind, random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", PAIRS)
def test_twenty_pairs(start: Start, tmp_path: Path, kind: str, seed: int) -> None:
    try_pair(start, tmp_path / "home", kind, random.Random(f"{kind}{seed}"))
