"""Boxes of a metric over clients: where they stand, what is said of them, and what is left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import RunError
from crosshatch.report.page import write_report
from crosshatch.report.pictures.client_boxes import MOST_ROWS, client_boxes, tick_values
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import read_runs
from tests.support.client_boxes import silos, spread
from tests.support.written_runs import WriteRun, write_seed


def picture(write_run: WriteRun, **metrics: Any) -> str:
    path = write_run("tdcd", per_client=silos(**metrics))
    return client_boxes(read_runs([path]), ["auc", "loss"])


def places(svg: str, kind: str, key: str) -> list[float]:
    return [float(found) for found in re.findall(rf'class="{kind}"[^>]* {key}="([\d.]+)%"', svg)]


def test_runs_without_it_have_no_section(write_run: WriteRun, tmp_path: Path) -> None:
    runs = read_runs([write_run("tdcd")])
    assert client_boxes(runs, ["auc"]) == ""
    write_report(runs, tmp_path / "report.html")
    assert "How clients differ" not in (tmp_path / "report.html").read_text()


def test_boxes_stand_where_the_numbers_say(write_run: WriteRun) -> None:
    svg = picture(write_run, auc=spread(0.7, 0.9))
    assert "AUC of the clients of bank in tdcd: 0.7 to 0.9, worst at bank/3" in svg
    ticks = [float(text) for text in re.findall(r'class="tick"[^>]*>([^<]*)<', svg)]
    at = dict(zip(ticks, places(svg, "tick", "x"), strict=True))
    assert (ticks[0], ticks[-1]) == (0.7, 0.9)
    (left,), (right,) = places(svg, "reach", "x1"), places(svg, "reach", "x2")
    assert (left, right) == (at[0.7], at[0.9])
    (begin,), (width,), (median,) = (
        places(svg, "box", "x"), places(svg, "box", "width"), places(svg, "median", "x1"),
    )  # fmt: skip
    assert begin == pytest.approx(left + (right - left) / 4, abs=0.02)
    assert width == pytest.approx((right - left) / 2, abs=0.02)
    assert median == pytest.approx((left + right) / 2, abs=0.02)
    assert places(svg, "worst", "cx") == [left]


def test_what_is_said_beside_the_picture(write_run: WriteRun) -> None:
    named = [{"client": "bank/3", "samples": 12, "value": 0.4, "value_of_column": "<north>"}]
    html = picture(write_run, auc=spread(0.7, 0.9), loss=spread(0.2, 0.4, worst=named))
    assert html.count("<svg") == 2
    assert html.count("<details>") == 1  # the second metric is opened on demand
    assert "1 too small" in html
    assert "2 with one label" in html
    assert "bank/3 (&lt;north&gt;)" in html
    assert "<north>" not in html


def test_long_names_are_cut_in_the_picture(write_run: WriteRun) -> None:
    run = "a run with a name that is very long"
    html = client_boxes(read_runs([write_run(run, per_client=silos(auc=spread(0.7, 0.9)))]), ["auc"])
    assert ">a run with a name tha...: bank, 9 clients</text>" in html
    assert f"<th>{run}<small>" in html


def test_one_value_at_all_clients(write_run: WriteRun) -> None:
    assert "NaN" not in picture(write_run, auc=spread(1.0, 1.0))


def test_many_rows_are_cut_and_said(write_run: WriteRun) -> None:
    runs = read_runs([write_run(f"run{i}", per_client=silos(auc=spread(0.7, 0.9))) for i in range(MOST_ROWS + 4)])
    html = client_boxes(runs, ["auc"])
    assert html.count('class="box"') == MOST_ROWS
    assert html.count("<small>bank</small>") == MOST_ROWS
    assert "4 more are in the summaries." in html


def test_of_several_seeds_the_first(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, "tdcd", seed, per_client=silos(auc=spread(0.7, 0.8 + seed / 10))) for seed in (0, 1)]
    html = client_boxes(pool_seeds(read_runs(paths)), ["auc"])
    assert html.count('class="box"') == 1
    assert "0.7 to 0.8" in html
    assert "Of several seeds the first is shown." in html


def test_a_summary_that_was_changed_is_refused(write_run: WriteRun) -> None:
    path = write_run("tdcd", per_client=silos(auc={"min": "low"}))
    with pytest.raises(RunError, match="does not have the form of a summary"):
        read_runs([path])


@given(st.floats(-1e3, 1e3), st.floats(1e-6, 1e6))
def test_ticks_surround_the_values(low: float, width: float) -> None:
    high = low + width
    ticks = tick_values(low, high)
    assert 2 <= len(ticks) <= 7
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= low + 1e-6 * width + 1e-9 * abs(low)
    assert ticks[-1] >= high - 1e-6 * width - 1e-9 * abs(high)
