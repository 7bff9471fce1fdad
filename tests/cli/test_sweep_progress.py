"""How far a sweep is, and how long the rest may take."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from crosshatch.cli.sweeping.sweep_progress import SweepBar, SweepLines, SweepPace, opening
from crosshatch.sweeps.jobs import Ended, Job


def jobs(rounds: int, count: int = 4) -> list[Job]:
    return [Job(f"run{i}", "", "", None, rounds, 1) for i in range(count)]


class Clock:
    """A clock that stands until it is moved on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_left() -> None:
    clock = Clock()
    pace, many = SweepPace(clock), jobs(100)
    pace.begin(many, {"run0"}, rounds_after=0)
    assert (pace.done, pace.total, pace.left) == (100, 400, None)
    pace.advance(many[1], 40)  # where an earlier start left off: no work of this one
    clock.now += 10
    assert pace.left is None
    pace.advance(many[1], 60)
    assert pace.left == pytest.approx(10 / 20 * 240)
    pace.end(many[1], Ended("finished"))
    assert pace.left == pytest.approx(10 / 60 * 200)
    pace.end(many[2], Ended("diverged", "at round 3"))  # its rounds are not left to do
    assert pace.left == pytest.approx(10 / 60 * 100)
    assert (pace.ended, pace.bad, pace.runs) == (3, 1, 4)
    pace.end(many[3], Ended("finished"))
    assert pace.left == 0


def test_time_left_over_rungs() -> None:
    clock = Clock()
    pace, first = SweepPace(clock), jobs(10)
    pace.begin(first, (), rounds_after=2 * 20)
    assert pace.total == 80
    clock.now += 4
    for job in first:
        pace.end(job, Ended("finished"))
    assert pace.done == 40
    assert pace.left == pytest.approx(4)
    pace.begin(jobs(30, 2), (), rounds_after=0)
    assert (pace.done, pace.total) == (40, 80)
    assert pace.left == pytest.approx(4)


def test_other_runs_are_timed_by_themselves() -> None:
    clock = Clock()
    pace, quick = SweepPace(clock), jobs(1000)
    pace.begin(quick, (), rounds_after=0)
    clock.now += 4
    for job in quick:
        pace.end(job, Ended("finished"))
    slow = [Job(f"slow{i}", "", "", None, 10, 1) for i in range(3)]
    pace.begin(slow, (), rounds_after=0)
    assert (pace.done, pace.total, pace.left) == (0, 30, None)
    clock.now += 60
    pace.end(slow[0], Ended("finished"))
    assert pace.left == pytest.approx(120)


def watch(listener: SweepLines | SweepBar) -> None:
    many = jobs(10, 3)
    with listener:
        listener.begin(many, {"run0"}, rung=0, rungs=1, rounds_after=0)
        listener.advance(many[1], 5)
        listener.ended(many[1], Ended("finished"))
        listener.ended(many[2], Ended("refused", "batch too large [500]"))


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    watch(SweepLines(stream))
    first, second, third = stream.getvalue().splitlines()
    assert first == "3 runs, 1 of which have finished"
    assert second.startswith("2/3  run1 finished  left ")
    assert third == "3/3  run2 refused: batch too large [500]"
    assert capsys.readouterr().err == ""


def test_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    watch(SweepLines(stream, quiet=True))
    assert stream.getvalue() == ""
    assert capsys.readouterr().err == "warning: run2 refused: batch too large [500]\n"


def test_bar() -> None:
    stream = io.StringIO()
    watch(SweepBar(Console(file=stream, force_terminal=True, width=100)))
    shown = stream.getvalue()
    assert "run2 refused: batch too large [500]" in shown
    assert "3/3 runs  1 bad" in shown


def test_rungs_are_named() -> None:
    assert opening(jobs(12), (), 1, 3) == "rung 2 of 3: 4 runs to round 12"
