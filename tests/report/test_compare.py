"""Comparison against a naive scan of the files, and its table."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from crosshatch.cli.show import show_comparison
from crosshatch.errors import ConfigError, RunError
from crosshatch.report.compare import compare_runs, find_arrival, find_best
from crosshatch.report.measures import parse_target
from crosshatch.report.printed_tables import print_comparison
from crosshatch.report.runs import Run, read_run, read_runs
from crosshatch.report.summary_file import Summary
from tests.support.written_runs import WriteRun, curve


def naive_arrival(path: Path, metric: str, value: float, higher: bool) -> tuple[int, float, float] | None:
    """Straight from the file."""
    for line in (path / "metrics.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        if (row[metric] >= value) if higher else (row[metric] <= value):
            return row["round"], row["bytes"], row["sim_seconds"]
    return None


def test_arrivals_equal_a_naive_scan(write_run: WriteRun) -> None:
    paths = [write_run(f"Q={q}", q=q, bytes_per_round=1000 * q) for q in (1, 5, 10)]
    wanted = [("auc", v / 100, True) for v in range(48, 80, 3)] + [("loss", v / 100, False) for v in range(44, 70, 5)]
    result = compare_runs(read_runs(paths), [f"{metric}={value}" for metric, value, _ in wanted])
    found = 0
    for path, outcome in zip(paths, result.outcomes, strict=True):
        for target, (metric, value, higher) in zip(result.targets, wanted, strict=True):
            arrival = outcome.arrivals[target.label]
            seen = None if arrival is None else (arrival.round, arrival.bytes, arrival.sim_seconds)
            assert seen == naive_arrival(path, metric, value, higher)
            found += seen is not None
    assert 0 < found < len(paths) * len(wanted)


def run_with(values: list[float]) -> Run:
    """A run in memory with `values` of AUC and loss in rounds 0, 1, ..."""
    rows = tuple({"round": i, "bytes": 0, "sim_seconds": 0, "auc": v, "loss": v} for i, v in enumerate(values))
    return Run("r", Path("r"), {}, "", rows, {}, Summary())


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, math.nan, math.inf]), min_size=1))
def test_best_is_the_first_best_finite_value(values: list[float]) -> None:
    finite = [value for value in values if math.isfinite(value)]
    for metric, pick in (("auc", max), ("loss", min)):
        best = find_best(run_with(values), metric)
        if not finite:
            assert best is None
        else:
            assert best is not None
            assert (best.value, best.round) == (pick(finite), values.index(pick(finite)))


def test_a_value_on_the_target_has_reached_it() -> None:
    arrival = find_arrival(run_with([0.1, 0.75]), parse_target("auc=0.75"))
    assert arrival is not None
    assert arrival.round == 1


def test_totals_come_from_the_summary_and_else_from_the_last_evaluation(write_run: WriteRun) -> None:
    done, stopped = compare_runs(read_runs([write_run("a", bytes=12345), write_run("b", finished=False)])).outcomes
    assert (done.bytes, done.finished) == (12345, True)
    assert (stopped.bytes, stopped.rounds, stopped.finished) == (40 * 80_000, 40, False)
    assert stopped.final["auc"] == pytest.approx(0.5 + 0.28 * (1 - math.exp(-10)))


def test_unknown_metric_names_those_there_are(write_run: WriteRun) -> None:
    with pytest.raises(RunError, match=r"run 'a' has no metric 'f1'.*choose from train_loss, auc, loss"):
        compare_runs(read_runs([write_run("a")]), ["f1=0.5"])


def test_malformed_target_and_no_runs(write_run: WriteRun) -> None:
    with pytest.raises(ConfigError, match="for example"):
        compare_runs(read_runs([write_run("a")]), ["auc:0.5"])
    with pytest.raises(RunError, match="no runs"):
        compare_runs([])


def test_table_says_everything_in_words(write_run: WriteRun) -> None:
    runs = read_runs([write_run("fast [bold]"), write_run("slow", q=1, finished=False)])
    out = io.StringIO()
    print_comparison(compare_runs(runs, ["auc=0.75", "loss=0.46"]), Console(file=out, width=160))
    text = out.getvalue()
    assert "fast [bold]" in text
    assert "slow (unfinished)" in text
    assert "To reach AUC of at least 0.75" in text
    assert "To reach test loss of at most 0.46" in text
    assert text.count("not reached") == 2
    assert "800 kB" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_heading_is_cut(write_run: WriteRun, width: int) -> None:
    rows = [
        {**row, "accuracy": row["auc"], "top5": row["auc"], "sim_seconds": 4711 + row["sim_seconds"]}
        for row in curve(10, 800_000)
    ]
    paths = [write_run("a run with a very long name, in many words", rows=rows), write_run("short", rows=rows)]
    out = io.StringIO()
    print_comparison(compare_runs(read_runs(paths), ["auc=0.75"]), Console(file=out, width=width))
    lines = out.getvalue().splitlines()
    assert max(len(line) for line in lines) <= width
    assert not any("\N{HORIZONTAL ELLIPSIS}" in line for line in lines)
    headings = [word for line in lines if "\u2503 rounds" in line for word in re.split(r" *\u2503 *", line) if word]
    assert headings[:5] == ["run", "rounds", "sent", "simulated", "AUC"]
    assert headings[-4:] == ["run", "rounds", "sent", "simulated"]
    assert ("top-5 accuracy" in headings) == (width == 120)


@pytest.mark.parametrize("smooth", [1, 2, 5])
def test_smooth_of_the_command_counts_for_all_runs(
    write_run: WriteRun, smooth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_run("tdcd")
    values = [row["auc"] for row in read_run(path).metrics]
    first = next(k for k in range(smooth - 1, len(values)) if sum(values[k - smooth + 1 : k + 1]) / smooth >= 0.7)
    show_comparison([path], ["auc=0.7"], None, smooth)
    printed = capsys.readouterr().out
    assert str(int(read_run(path).metrics[first]["round"])) in printed
    assert (f"at the mean of {smooth} evaluations" in " ".join(printed.split())) == (smooth > 1)


@pytest.mark.parametrize(("smooth", "words"), [(0, "--smooth 0: at least 1"), (99, "--smooth 99 is more than the 21")])
def test_smooth_that_makes_no_sense(write_run: WriteRun, smooth: int, words: str) -> None:
    with pytest.raises(RunError, match=words):
        show_comparison([write_run("tdcd")], [], None, smooth)
