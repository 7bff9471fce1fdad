"""What is said of a run whose parties are processes: its pace, bytes, and who is waited for since when."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from crosshatch.cli.progress import Bar, PlainProgress
from crosshatch.runs.config import read_config
from crosshatch.runs.launching.launched_run import waited_for
from crosshatch.runs.launching.telling import PartyProgress
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


def test_the_bar_shows_pace_bytes_and_waiting(tmp_path: Path) -> None:
    path = tmp_path / "wine.toml"
    path.write_text('data = {name = "wine"}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 20, threads = 1}')
    stream = io.StringIO()
    with Bar(Console(file=stream, force_terminal=True, width=160)) as bar:
        bar.begin(prepare(read_config(path), folder=None), tmp_path)
        bar.advance(5)
        bar.under_way(2500, ("client-0-0-1", 12.3))
    said = stream.getvalue()
    assert "round 5/20" in said
    assert "rounds/s  2.5 kB  waiting for client-0-0-1 for 12 s" in said
