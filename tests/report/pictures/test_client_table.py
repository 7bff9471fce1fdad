"""A metric over clients: what is said of each silo, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import RunError
from crosshatch.report.page import write_report
from crosshatch.report.pictures.run_sections import MOST_OF_CLIENTS, client_table
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import read_runs
from tests.support.client_spreads import silos, spread
from tests.support.written_runs import WriteRun, write_seed


def table(write_run: WriteRun, **metrics: Any) -> str:
    path = write_run("tdcd", per_client=silos(**metrics))
    return client_table(read_runs([path]), ["auc", "loss"])


def test_runs_without_it_have_no_section(write_run: WriteRun, tmp_path: Path) -> None:
    runs = read_runs([write_run("tdcd")])
    assert client_table(runs, ["auc"]) == ""
    write_report(runs, tmp_path / "report.html")
    assert "How clients differ" not in (tmp_path / "report.html").read_text()


def test_what_is_said_of_a_silo(write_run: WriteRun) -> None:
    named = [{"client": "bank/3", "samples": 12, "value": 0.4, "value_of_column": "<north>"}]
    html = table(write_run, auc=spread(0.7, 0.9), loss=spread(0.2, 0.4, worst=named))
    assert "<small>median 0.8</small><small>half of them 0.75 to 0.85</small><small>all 0.7 to 0.9</small>" in html
    assert "1 too small" in html
    assert "2 with one label" in html
    assert "bank/3 (&lt;north&gt;)" in html
    assert "<north>" not in html


def test_many_rows_are_cut_and_said(write_run: WriteRun) -> None:
    count = MOST_OF_CLIENTS + 4
    runs = read_runs([write_run(f"run{i}", per_client=silos(auc=spread(0.7, 0.9))) for i in range(count)])
    html = client_table(runs, ["auc"])
    assert html.count("<small>bank</small>") == MOST_OF_CLIENTS
    assert "4 more are in the summaries." in html


def test_of_several_seeds_the_first(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, "tdcd", seed, per_client=silos(auc=spread(0.7, 0.8 + seed / 10))) for seed in (0, 1)]
    html = client_table(pool_seeds(read_runs(paths)), ["auc"])
    assert html.count("<small>bank</small>") == 1
    assert "0.7 to 0.8" in html
    assert "Of several seeds the first is shown." in html


def test_a_summary_that_was_changed_is_refused(write_run: WriteRun) -> None:
    path = write_run("tdcd", per_client=silos(auc={"min": "low"}))
    with pytest.raises(RunError, match="does not have the form of a summary"):
        read_runs([path])
