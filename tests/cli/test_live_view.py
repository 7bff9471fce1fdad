"""What is said of a run whose parties are processes: its pace, bytes, and who is waited for since when."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from crosshatch.cli.progress import Bar, PlainProgress
from crosshatch.runs.config import read_config
from crosshatch.runs.launching.launched_run import waited_for
from crosshatch.runs.launching.process_plan import PartyProgress
from crosshatch.runs.prepare import prepare


def test_who_is_waited_for_is_who_waits_for_nobody() -> None:
    told = {
        "hub-0-0": PartyProgress(4, 100, "client-0-0-1", 7.5),
        "hub-0-1": PartyProgress(4, 100, "hub-0-0", 7.0),
        "client-0-0-0": PartyProgress(4, 100, "hub-0-0", 7.2),
        "client-0-0-1": PartyProgress(4, 100),
    }
    assert waited_for(told) == ("client-0-0-1", 7.5)
    del told["client-0-0-1"]  # it died before it said anything
    assert waited_for(told) == ("client-0-0-1", 7.5)
    assert waited_for({"hub-0-0": PartyProgress(4, 100)}) is None


def test_lines_name_each_who_is_waited_for_once() -> None:
    stream = io.StringIO()
    lines = PlainProgress(stream)
    for waited in (None, ("hub-0-1", 1.0), ("hub-0-1", 6.0), ("hub-0-1", 9.0), None, ("hub-0-1", 5.5)):
        lines.under_way(1000, waited)
    assert stream.getvalue().splitlines() == ["waiting for hub-0-1 for 6 s", "waiting for hub-0-1 for 6 s"]


def test_the_time_left_counts_from_when_all_have_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = tmp_path / "wine.toml", [100.0]
    path.write_text('data = {name = "wine"}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 40, threads = 1}')
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    lines = PlainProgress(stream)
    lines.begin(prepare(read_config(path), folder=None), tmp_path)
    row = {"round": 20, "bytes": 1, "sim_seconds": 1.0, "train_loss": 0.5, "accuracy": 0.5}
    for seconds, done in ((60, 20), (1, 20), (2, 25), (2, 30)):  # it takes a minute until all are there, at round 20
        now[0] += seconds
        lines.advance(done)
        lines.evaluated({**row, "round": done})
    first, *_, last = stream.getvalue().splitlines()[-4:]
    assert "left" not in first
    assert last.endswith("left 4 s")


def test_the_bar_shows_pace_bytes_and_waiting(tmp_path: Path) -> None:
    path = tmp_path / "wine.toml"
    path.write_text('data = {name = "wine"}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 20, threads = 1}')
    stream = io.StringIO()
    with Bar(Console(file=stream, force_terminal=True, width=160)) as bar:
        bar.begin(prepare(read_config(path), folder=None), tmp_path)
        bar.advance(4)
        bar.advance(5)
        bar.under_way(2500, ("client-0-0-1", 12.3))
    said = stream.getvalue()
    assert "round 5/20" in said
    assert "rounds/s  2.5 kB  waiting for client-0-0-1 for 12 s" in said
