"""Whoever dies or is interrupted, the model is the undisturbed one bit for bit, and nobody is left over."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from crosshatch.testing.federations import FederationCase, optimiser_cases, vertical_cases
from crosshatch.workers.crew import InlineWorkers
from crosshatch.workers.ray_crew import RayWorkers
from tests.support.whole_sweeps import wait_until
from tests.workers.hands import same_bits, simulate
from tests.workers.on_ray import (
    APART,
    CONFIG,
    below,
    crosshatch,
    evaluations,
    is_running,
    model,
    require_same_in_the_end,
    under_way,
    write_apart,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[ray]'"),
]
CASES = (vertical_cases()[0], optimiser_cases()[0])
ENDLESS = ("--set", "run.rounds=1000000")


class Killing:
    """Ends workers with SIGKILL as soon as they are asked, every so many times: one in turn, or all at once."""

    def __init__(self, crew: RayWorkers, every: int, *, at_once: bool) -> None:
        self.killed, self._asked, self._every, self._at_once = 0, 0, every, at_once
        self._crew: Any = crew
        self._ask: Callable[[Sequence[Any]], list[Any]] = self._crew.ask
        self._get: Callable[..., Any] = self._crew._get
        vars(crew).update(ask=self.ask, _get=self.get)
        self._doomed: list[int] = []

    def ask(self, requests: Sequence[Any]) -> list[Any]:
        self._asked += 1
        if self._asked % self._every == 0 and self.killed < 3:
            actors = self._crew._actors if self._at_once else [self._crew._actors[self.killed % 2]]
            self._doomed = self._crew._ray.get([one.__ray_call__.remote(lambda _: os.getpid()) for one in actors])
        return self._ask(requests)

    def get(self, *under_way: Any) -> Any:
        for process in self._doomed:
            os.kill(process, signal.SIGKILL)
        self.killed, self._doomed = self.killed + len(self._doomed), []
        return self._get(*under_way)


@pytest.mark.parametrize("at_once", [False, True], ids=["in turn", "at once"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_workers_that_are_killed(case: FederationCase, at_once: bool) -> None:
    wanted = simulate(case, InlineWorkers(), rounds=6)
    with RayWorkers(2) as crew:
        killing = Killing(crew, every=3, at_once=at_once)
        assert same_bits(simulate(case, crew, rounds=6), wanted)
        assert sum(crew.deaths) == killing.killed >= 3


def test_interrupted(tmp_path: Path) -> None:
    """By Ctrl-C, which all processes of a terminal hear."""
    (tmp_path / "small.toml").write_text(CONFIG)
    with under_way(tmp_path, "--workers", "2", *ENDLESS) as process:
        wait_until(lambda: evaluations(tmp_path) >= 3)
        everybody = set(below(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said
    wait_until(lambda: not any(map(is_running, everybody)))
    require_same_in_the_end(tmp_path, workers=2)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A folder with a table and a config that has workers read it."""
    write_apart(tmp_path)
    return tmp_path


# A worker says at the seventh frame by a file with its number that it reads, and waits there for another file.
LOADER = """
import os
import time
from pathlib import Path

import polars as pl

HOME = Path(__file__).parent

def frames():
    rows = pl.read_parquet(HOME / "rows.parquet")
    me = Path("/proc/self/cmdline").read_bytes().split(b"\\0")[0].decode()
    for low in range(0, 900, 90):
        yield rows[low : low + 90].to_dict()
        if low == 540 and me.startswith("ray::Worker"):
            (HOME / f"reading-{os.getpid()}").touch()
            while not (HOME / "go").exists():
                time.sleep(0.05)
"""


@pytest.fixture
def loader(apart: Path) -> Path:
    """The same folder with a loader of its own, which stops half-way in a worker."""
    (apart / "mine.py").write_text(LOADER)
    text = (apart / "small.toml").read_text()
    (apart / "small.toml").write_text(text.replace('"rows.parquet"', '"mine.py:frames"'))
    return apart


def readers(home: Path) -> list[int]:
    return [int(path.name.partition("-")[2]) for path in home.glob("reading-*")]


def test_killed_while_they_read(loader: Path) -> None:
    """Workers with half of their rows."""
    with under_way(loader, "--workers", "2") as process:
        wait_until(lambda: len(readers(loader)) == 2)
        for one in readers(loader):
            os.kill(one, signal.SIGKILL)
        (loader / "go").touch()
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said
    (loader / "small.toml").write_text(APART)  # the same rows
    assert crosshatch(loader, "--workers", "0", "--out", "whole").returncode == 0
    assert model(loader / "out") == model(loader / "whole")


def test_interrupted_while_they_read(loader: Path) -> None:
    with under_way(loader, "--workers", "2") as process:
        wait_until(lambda: len(readers(loader)) == 2)
        everybody = set(below(process.pid))
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("\nerror: interrupted; nothing was left half done\n")
    assert "Traceback" not in said
    wait_until(lambda: not any(map(is_running, everybody)))
    assert not (loader / "out").exists()
