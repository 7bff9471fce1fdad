"""Runs of several seeds as one: against numpy's means, medians and deviations of the files."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from crosshatch.report.compare import compare_runs
from crosshatch.report.curves import curve_data
from crosshatch.report.findings import headline, level_all_reach
from crosshatch.report.measures import parse_target
from crosshatch.report.page import write_report
from crosshatch.report.pooled import pool_seeds, singles
from crosshatch.report.printed_tables import print_comparison
from crosshatch.report.runs import read_runs
from tests.support.written_runs import WriteRun, curve, write_seed

AUC = parse_target("auc=0.75")


def noisy(seed: int, q: int = 10, rounds: int = 40) -> list[dict[str, Any]]:
    """A curve whose values and costs vary with the seed."""
    random = np.random.default_rng(seed)
    rows = curve(q, 80_000 + 100 * seed, rounds)
    return [row | {"auc": row["auc"] + 0.01 * random.normal(), "sim_seconds": row["sim_seconds"] * (1 + 0.1 * seed)}
            for row in rows]  # fmt: skip


def five(write_run: WriteRun, **given: Any) -> list[Path]:
    return [write_seed(write_run, "tdcd", seed, rows=noisy(seed), **given) for seed in range(5)]


def column(paths: list[Path], key: str) -> Any:
    """Of all evaluations of all files: an array of seeds x evaluations."""
    return np.array([[json.loads(line)[key] for line in (path / "metrics.jsonl").read_text().splitlines()]
                     for path in paths])  # fmt: skip


def test_the_curve_is_the_mean_and_the_band_goes_from_the_lowest_to_the_highest(write_run: WriteRun) -> None:
    paths = five(write_run)
    (run,) = pool_seeds(read_runs(paths))
    assert (run.name, [one.name for one in run.seeds]) == ("tdcd (5 seeds)", [f"tdcd-s{seed}" for seed in range(5)])
    for key in ("round", "bytes", "sim_seconds", "auc", "loss"):
        assert [row[key] for row in run.metrics] == pytest.approx(column(paths, key).mean(axis=0), rel=1e-12)
    data = curve_data([run], [AUC])["runs"][0]
    assert data["y"]["auc"] == pytest.approx(column(paths, "auc").mean(axis=0), rel=1e-5)
    assert data["low"]["auc"] == pytest.approx(column(paths, "auc").min(axis=0), rel=1e-5)
    assert data["high"]["auc"] == pytest.approx(column(paths, "auc").max(axis=0), rel=1e-5)
    assert "low" not in curve_data(run.seeds, [AUC])["runs"][0]


def test_the_table_has_means_and_deviations(write_run: WriteRun) -> None:
    paths = five(write_run)
    (outcome,) = compare_runs(pool_seeds(read_runs(paths)), [AUC]).outcomes
    finals, bests = column(paths, "auc")[:, -1], column(paths, "auc").max(axis=1)
    assert outcome.final["auc"] == pytest.approx(finals.mean())
    assert outcome.deviation["auc"] == pytest.approx(np.std(finals, ddof=1))
    assert outcome.best["auc"].value == pytest.approx(bests.mean())
    assert outcome.best_deviation["auc"] == pytest.approx(np.std(bests, ddof=1))
    assert outcome.bytes == pytest.approx(column(paths, "bytes")[:, -1].mean())
    assert (outcome.rounds, outcome.finished, outcome.diverged) == (40, True, None)


def arrivals(paths: list[Path], key: str, level: float) -> list[float]:
    """What each seed had spent when it reached the level; infinite where it never did."""
    values, costs = column(paths, "auc"), column(paths, key)
    return [next((c for v, c in zip(*pair, strict=True) if v >= level), np.inf)
            for pair in zip(values, costs, strict=True)]  # fmt: skip


@pytest.mark.parametrize("level", [0.7, 0.75, 0.78, 0.79, 0.8, 0.85])
@pytest.mark.parametrize("seeds", [2, 4, 5])
def test_cost_to_a_target_is_a_median_over_all_seeds(write_run: WriteRun, level: float, seeds: int) -> None:
    paths = five(write_run)[:seeds]
    target = parse_target(f"auc={level}")
    (outcome,) = compare_runs(pool_seeds(read_runs(paths)), [target]).outcomes
    arrival = outcome.arrivals[target.label]
    assert len(outcome.arrived(target)) == sum(np.isfinite(arrivals(paths, "bytes", level)))
    for key in ("round", "bytes", "sim_seconds"):
        median = np.median(arrivals(paths, key, level))
        if np.isfinite(median):
            assert arrival is not None
            assert getattr(arrival, key) == pytest.approx(median)
        else:
            assert arrival is None


def text_of(paths: list[Path], *targets: str, width: int = 100) -> str:
    out = io.StringIO()
    print_comparison(compare_runs(pool_seeds(read_runs(paths)), targets), Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 100])
def test_the_terminal_shows_deviations_ranges_and_how_many_arrived(write_run: WriteRun, width: int) -> None:
    paths = five(write_run)
    text = text_of([*paths, write_run("single", q=1)], "auc=0.75", "auc=0.79", width=width)
    finals = column(paths, "auc")[:, -1]
    assert f"{finals.mean():.4g} ± {np.std(finals, ddof=1):.2g}" in text
    rounds = arrivals(paths, "round", 0.75)
    assert re.search(rf"5 of 5 .* {np.median(rounds):.0f} ", text)
    assert f"from {min(rounds):.0f} " in text
    assert f"to {max(rounds):.0f} " in text
    reached = sum(np.isfinite(arrivals(paths, "round", 0.79)))
    assert 0 < reached < 5
    assert f"{reached} of 5" in text
    assert "single" in text
    assert max(len(line) for line in text.splitlines()) <= width
    assert "\N{HORIZONTAL ELLIPSIS}" not in text


def test_what_is_one_experiment(write_run: WriteRun) -> None:
    first, second = (write_seed(write_run, "tdcd", seed) for seed in (0, 1))
    other = write_seed(write_run, "other", 1, q=5)
    again = write_seed(write_run, "again", 1)
    bare = write_run("bare")
    (bare / "config.toml").unlink()
    names = [run.name for run in pool_seeds(read_runs([first, other, second, again, bare]))]
    assert names == ["tdcd (2 seeds)", "other-s1", "again-s1", "bare"]
    assert [run.name for run in pool_seeds(read_runs([first, first]))] == ["tdcd-s0 (1)", "tdcd-s0 (2)"]
    runs = read_runs([first, other])
    assert pool_seeds(runs) == runs  # single runs stay what they are


def test_threads_and_checkpoints_decide_no_number_but_rounds_do(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, "tdcd", seed) for seed in range(2)]
    config = paths[1] / "config.toml"
    written = config.read_text()
    config.write_text(written + "threads = 2\ncheckpoint_every = 5\n")
    assert len(pool_seeds(read_runs(paths))) == 1
    config.write_text(written + "rounds = 5\n")
    assert len(pool_seeds(read_runs(paths))) == 2


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (["q10-s0", "q10-s1"], "q10"),
        (["q10_seed1", "q10_seed12"], "q10"),
        (["fedbcd1", "fedbcd2"], "fedbcd"),
        (["same", "same"], "same"),
        (["seed-0", "seed-1"], "tdcd"),
        (["one", "two"], "tdcd"),
        (["losses", "losses-1"], "losses"),
    ],
)
def test_names(write_run: WriteRun, names: list[str], common: str) -> None:
    paths = [write_seed(write_run, f"run-{seed}", seed, called=name) for seed, name in enumerate(names)]
    assert [run.name for run in pool_seeds(read_runs(paths))] == [f"{common} (2 seeds)"]


def test_equal_names_of_pools_are_told_apart(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, f"x{q}-{s}", s, q=q, called=f"x-{s}") for q in (1, 2) for s in (0, 1)]
    names = [run.name for run in pool_seeds(read_runs(paths))]
    assert names == ["x (2 seeds), x-0 (local_steps=1) first", "x (2 seeds), x-0 (local_steps=2) first"]


LOST = {"round": 6, "why": "the loss grew"}


def test_seeds_that_diverged_are_marked_and_not_in_the_mean(write_run: WriteRun) -> None:
    paths = five(write_run)
    lost = write_seed(write_run, "tdcd", 5, rows=noisy(5, rounds=6), diverged=LOST)
    (run,) = pool_seeds(read_runs([*paths, lost]))
    assert (run.name, run.label, run.diverged) == ("tdcd (6 seeds)", "tdcd (6 seeds, 1 diverged)", False)
    assert [row["auc"] for row in run.metrics] == pytest.approx(column(paths, "auc").mean(axis=0))
    text = text_of([*paths, lost], "auc=0.75", width=140)
    assert "tdcd (6 seeds, 1 diverged)" in text
    assert "5 of 6" in text
    out = paths[0].parent / "report.html"
    write_report([run], out, [AUC])
    page = out.read_text()
    assert "Diverged: tdcd-s5, the loss grew." in page
    assert "tdcd (6 seeds)<small>1 diverged</small>" in page


def test_a_seed_that_diverged_has_reached_nothing(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, "tdcd", s, rows=noisy(s), diverged=LOST if s else None) for s in range(3)]
    (outcome,) = compare_runs(pool_seeds(read_runs(paths)), [AUC]).outcomes
    assert (len(outcome.arrived(AUC)), outcome.arrivals[AUC.label]) == (1, None)
    assert "by too few" in text_of(paths, "auc=0.75")


def test_all_seeds_diverged(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, "bad", s, rows=noisy(s, rounds=6), diverged=LOST) for s in range(2)]
    runs = pool_seeds(read_runs([*paths, write_run("good", q=5)]))
    assert runs[0].diverged
    assert headline(runs, [AUC]).endswith("; bad (2 seeds) diverged")


def test_unfinished_seeds_are_marked(write_run: WriteRun) -> None:
    paths = [*five(write_run), write_seed(write_run, "tdcd", 5, rows=noisy(5, rounds=4), finished=False)]
    assert "tdcd (6 seeds, 1 unfinished)" in text_of(paths, width=140)
    (run,) = pool_seeds(read_runs(paths))
    assert run.metrics[-1]["round"] == 40


def test_seeds_that_ended_early_are_drawn_as_far_as_all_go(write_run: WriteRun) -> None:
    paths = [write_seed(write_run, "tdcd", s, rows=noisy(s, rounds=20 + 10 * s)) for s in range(3)]
    (run,) = pool_seeds(read_runs(paths))
    assert [row["round"] for row in run.metrics] == list(range(0, 21, 2))
    (outcome,) = compare_runs([run]).outcomes
    finals = [json.loads((path / "metrics.jsonl").read_text().splitlines()[-1])["auc"] for path in paths]
    assert outcome.final["auc"] == pytest.approx(np.mean(finals))
    assert outcome.rounds == 30


def test_sentences_speak_of_medians(write_run: WriteRun) -> None:
    slow = [write_seed(write_run, "slow", seed, q=1, rows=noisy(seed, q=1, rounds=200)) for seed in range(3)]
    runs = pool_seeds(read_runs([*five(write_run), *slow]))
    said = headline(runs, [AUC])
    assert re.fullmatch(
        r"tdcd \(5 seeds\) reaches AUC 0\.75 with [\d.]+ kB in the median, \d+x less than slow \(3 seeds\)", said
    )
    level = level_all_reach(runs, "auc")
    assert level is not None
    assert level.value <= min(max(row["auc"] for row in one.metrics) for one in singles(runs))


def test_bytes_by_link_are_means(write_run: WriteRun) -> None:
    paths = five(write_run)
    (run,) = pool_seeds(read_runs(paths))
    sums = [
        json.loads((path / "summary.json").read_text())["bytes_by_link"]["client-hub up"]["bytes"] for path in paths
    ]
    assert run.facts.bytes_by_link["client-hub up"].bytes == pytest.approx(np.mean(sums))
    assert sum(part.bytes for part in run.facts.bytes_by_link.values()) == pytest.approx(
        column(paths, "bytes")[:, -1].mean()
    )


def test_the_page_shows_each_seed(write_run: WriteRun, tmp_path: Path) -> None:
    write_report(pool_seeds(read_runs([*five(write_run), write_run("alone", q=1)])), tmp_path / "p.html", [AUC])
    page = (tmp_path / "p.html").read_text()
    assert "Each of the 5 runs, one per seed, by itself" in page
    for seed in range(5):
        assert f"tdcd-s{seed}" in page
    assert page.count("<summary>config.toml of") == 2
    assert "config.toml of tdcd (5 seeds), seed 0" in page
    assert "[0, 1, 2, 3, 4]" in page  # what differs between the configs
    write_report(read_runs([tmp_path / "alone"]), tmp_path / "p.html")
    assert "seeds" not in (tmp_path / "p.html").read_text().split("<script")[0]


def test_a_config_of_another_kind_is_left_alone(write_run: WriteRun) -> None:
    paths = [write_run("a"), write_run("b"), write_run("c")]
    for path, text in zip(paths, ("run = 3\ndata = 4", "[run]\nseed = 'x'", "[run]\nname = 'c'"), strict=True):
        (path / "config.toml").write_text(text)
    runs = read_runs(paths)
    assert pool_seeds(runs) == runs
    assert "reach" in headline(runs, [AUC])
