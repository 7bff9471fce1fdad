"""Runs are told apart: by colour, dash or symbol, and yardsticks by their dashes."""

from __future__ import annotations

from crosshatch.report.palette import NEUTRAL, run_styles
from crosshatch.report.runs import read_run
from tests.support.written_runs import WriteRun


def test_no_two_runs_look_alike(write_run: WriteRun) -> None:
    names = ["central", "central", "fedbcd", "tdcd", "fedbcd"]
    runs = [read_run(write_run(f"run{i}", algorithm=name)) for i, name in enumerate(names)]
    styles = run_styles(runs)
    assert len({(style.color, style.dash) for style in styles}) == len(runs)
    assert [style.color == NEUTRAL for style in styles] == [True, True, False, False, False]
