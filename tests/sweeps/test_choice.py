"""By what a sweep chooses: which evaluation counts, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crosshatch.errors import ConfigError
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import Summary
from crosshatch.runs.config import decode_config
from crosshatch.sweeps.choice import parse_choice

AUCS = [(0, 0.5, 0.4), (5, 0.9, 0.7), (10, 0.9, 0.8), (15, 0.8, 0.9)]


def run_of(rows: list[tuple[int, float, float]]) -> Run:
    """Evaluations of a round, the AUC on validation rows and that on test rows."""
    metrics = tuple(
        {
            "round": n,
            "bytes": 8 * n,
            "sim_seconds": 0.5 * n,
            "validation_auc": ours,
            "auc": test,
            "train_loss": 1 / (n + 1),
        }
        for n, ours, test in rows
    )
    return Run("a", Path("a"), {}, "", metrics, {"best_round": {"by": "validation_auc"}}, Summary())


@pytest.mark.parametrize(
    ("text", "round", "value", "higher"),
    [
        (None, 5, 0.9, True),  # of equal evaluations the first
        ("best validation auc", 5, 0.9, True),
        ("Best  validation_AUC", 5, 0.9, True),
        ("last validation auc", 15, 0.8, True),
        ("best train_loss", 15, 1 / 16, False),
        ("fewest rounds to validation auc=0.85", 5, 5, False),
        ("fewest bytes to validation auc>=0.85", 5, 40, False),
        ("fewest seconds to train_loss=0.1", 10, 5.0, False),
    ],
)
def test_the_evaluation_that_counts(text: str | None, round: int, value: float, higher: bool) -> None:
    run = run_of(AUCS)
    choice = parse_choice(text).resolved(run)
    row = choice.counted(run)
    assert row is not None
    assert choice.metric is not None
    assert (row["round"], row[choice.metric]) == (round, value)
    assert choice.higher is higher


def test_a_target_that_is_never_reached() -> None:
    assert parse_choice("fewest rounds to validation auc=0.95").counted(run_of(AUCS)) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("best auc", "would go by the test rows"),
        ("last accuracy", "write 'last validation accuracy'"),
        ("fewest rounds to auc=0.9", "write 'fewest rounds to validation auc=0.9'"),
        ("best validation aucc", "unknown metric 'validation aucc'"),
        ("best", "write 'best validation auc'"),
        ("", "write 'best validation auc'"),
        ("worst validation auc", "write 'best validation auc'"),
        ("fewest hops to validation auc=0.9", "beside rounds also bytes and seconds"),
        ("fewest rounds to validation auc", "is not METRIC=NUMBER"),
        ("fewest rounds to validation auc=high", "is not METRIC=NUMBER"),
    ],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        parse_choice(text)


def tables(**changes: dict[str, object]) -> dict[str, object]:
    return {"data": {"name": "wine"}, "algorithm": {"name": "fedbcd"}, "run": {"rounds": 2}} | changes


def test_validation_rows_are_needed() -> None:
    without = decode_config(tables())
    for text in (None, "best validation auc", "fewest rounds to validation auc=0.9"):
        with pytest.raises(ConfigError, match=r"there are none: write validation = 0\.2"):
            parse_choice(text).check(without)
    parse_choice("last train_loss").check(without)
    parse_choice("best validation auc").check(decode_config(tables(data={"name": "wine", "validation": 0.2})))


def test_the_metric_must_be_measured() -> None:
    config = decode_config(tables(data={"name": "wine", "validation": 0.2}, evaluate={"metrics": ["accuracy"]}))
    parse_choice("best validation accuracy").check(config)
    with pytest.raises(ConfigError, match=r"'auc' is not measured: add it to evaluate\.metrics \(now accuracy\)"):
        parse_choice("best validation auc").check(config)
