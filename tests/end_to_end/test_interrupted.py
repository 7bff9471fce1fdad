"""Ctrl-C or SIGTERM at any moment of a command: one line, exit code 130, no traceback, and a second one as well."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command_line import environment
from tests.support.whole_sweeps import CONFIG, wait_until

LOADED = "import time:"  # how Python begins a line about a module that it has loaded
TRAIN = ("train", "small.toml", "--out", "runs/one", "--set", "run.rounds=1000000", "--set", "evaluate.every=1")
SWEEP = ("sweep", "small.toml", "--out", "runs/one", "--grid", "algorithm.step_size=0.1,0.2", "--jobs", "1")


class Started:
    """A command as a process of its own that says on stderr, a file, what it loads."""

    def __init__(self, home: Path, arguments: tuple[str, ...]) -> None:
        self._errors = home.with_name("errors.txt")
        with self._errors.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-X", "importtime", "-m", "crosshatch", *arguments],
                cwd=home, env=environment(), stdout=subprocess.PIPE, stderr=file, text=True,
            )  # fmt: skip

    def has_loaded(self, module: str) -> None:
        """Wait until it has."""
        line = re.compile(rf"^{LOADED}.*\| +{re.escape(module)}$", re.MULTILINE)
        wait_until(lambda: line.search(self._errors.read_text()))

    def has_printed(self, words: str) -> None:
        """Wait until it has."""
        assert self.process.stdout is not None
        assert any(words in line for line in self.process.stdout)

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        os.kill(self.process.pid, number)

    def end(self) -> tuple[int, list[str]]:
        """Its exit code, and the lines on stderr that are its own."""
        self.process.communicate()
        lines = self._errors.read_text().splitlines()
        return self.process.returncode, [line for line in lines if not line.startswith(LOADED)]


Start = Callable[..., Started]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "small.toml").write_text(CONFIG)
    return home


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    begun: list[Started] = []

    def run(*arguments: str) -> Started:
        begun.append(Started(home, arguments))
        return begun[-1]

    yield run
    for one in begun:
        one.process.kill()
        one.process.wait()
        assert one.process.stdout is not None
        one.process.stdout.close()


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (TRAIN, "crosshatch.runs.stopping"),
        (TRAIN, "typer"),
        (TRAIN, "torch._utils"),
        (TRAIN, "torch"),
        (SWEEP, "crosshatch.sweeps.choice"),
        (("report", "runs/one"), "crosshatch.report.units"),
    ],
)
def test_while_it_loads(start: Start, home: Path, arguments: tuple[str, ...], module: str) -> None:
    command = start(*arguments)
    command.has_loaded(module)
    command.interrupt()
    code, said = command.end()
    if arguments[0] == "report" and code == 2:  # it was quicker, and Ctrl-C came when all was said
        assert len(said) == 1
        return
    assert (code, said) in ((130, ["error: interrupted"]), (130, ["error: interrupted; nothing was left half done"]))
    assert [path.name for path in home.iterdir()] == ["small.toml"]


def test_twice_while_it_loads(start: Start, home: Path) -> None:
    command = start(*TRAIN)
    command.has_loaded("torch._utils")
    command.interrupt(signal.SIGTERM)
    command.interrupt()
    assert command.end() == (130, ["error: interrupted"])
    assert [path.name for path in home.iterdir()] == ["small.toml"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_data_are_prepared(start: Start, home: Path, number: signal.Signals) -> None:
    """The folder is in hand by then, and is given up."""
    command = start(*TRAIN, "--set", "algorithm.step_size=measure")
    command.has_printed("tried step_size")
    command.interrupt(number)
    code, said = command.end()
    assert (code, said) == (130, ["error: interrupted; nothing was left half done"])
    assert [path.name for path in home.iterdir()] == ["small.toml"]


def test_a_second_time_while_the_round_is_finished(start: Start, home: Path) -> None:
    """Whichever of both is answered first: a line that says how to go on."""
    command = start(*TRAIN)
    command.has_printed("round       2/")
    command.interrupt()
    command.interrupt()
    code, said = command.end()
    assert code == 130
    (line,) = said
    again = "crosshatch train runs/one/config.toml --out runs/one --resume"
    assert line.startswith(("stopped after round", "error: interrupted; go on from the last checkpoint with: "))
    assert line.endswith(again)
    assert not (home / "runs" / "one" / ".writer").exists()


def test_a_sweep_twice(start: Start) -> None:
    command = start(*SWEEP, "--set", "run.rounds=1000000")
    command.has_printed("2 runs")
    command.interrupt()
    command.interrupt()
    code, said = command.end()
    assert code == 130
    (line,) = said
    assert "go on with: crosshatch sweep small.toml" in line


def test_one_that_was_told_to_ignore_it(start: Start) -> None:
    """As by nohup, or in the background of a script."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        command = start("train", "small.toml", "--out", "one")
    finally:
        signal.signal(signal.SIGINT, before)
    command.has_loaded("typer")
    command.interrupt()
    assert command.end() == (0, [])
