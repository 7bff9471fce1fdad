"""Runs that were tested on other rows are never ranked together without a word."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.data.identity.fingerprint import Fingerprint, fingerprint_text
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.take_fingerprint import take_fingerprint
from crosshatch.errors import RunError
from crosshatch.report.compare import compare_runs
from crosshatch.report.findings import AXES, headline, target_finding
from crosshatch.report.measures import parse_target
from crosshatch.report.page import write_report
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.printed_tables import print_comparison
from crosshatch.report.rows_apart import rows_apart
from crosshatch.report.runs import read_runs
from tests.support.written_runs import WriteRun, write_seed

TARGET = "auc=0.7"


def fingerprint(split_seed: int = 0, key: int = 0, silos: int = 2) -> Fingerprint:
    dataset = load_dataset(DataSettings(name="wine", split_seed=split_seed))
    return take_fingerprint(dataset, FederationSettings(silos=silos), OwnerKey(bytes([key] * 32)))


def keep(path: Path, found: Fingerprint | None) -> Path:
    if found is not None:
        (path / "fingerprint.json").write_bytes(fingerprint_text(found))
    return path


def make(write_run: WriteRun, **prints: Fingerprint | None) -> list[Path]:
    """Runs by name; each is cheaper than the one before."""
    return [
        keep(write_run(name, bytes_per_round=80_000 // 2**place), found)
        for place, (name, found) in enumerate(prints.items())
    ]


def printed(paths: list[Path]) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_comparison(compare_runs(pool_seeds(read_runs(paths)), [TARGET]), console)
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().split())


def test_the_same_rows_need_no_word(write_run: WriteRun, tmp_path: Path) -> None:
    paths = make(write_run, one=fingerprint(), two=fingerprint(), three=fingerprint(silos=3))
    found = rows_apart(read_runs(paths))
    assert (found.notes, found.differ) == ((), False)
    assert "note:" not in printed(paths)
    assert headline(read_runs(paths[:2]), [parse_target(TARGET)]).startswith("two reaches AUC 0.7 with")
    write_report(read_runs(paths), tmp_path / "page.html")
    assert "tested on the same rows" not in (tmp_path / "page.html").read_text()


def test_other_rows_are_said_everywhere_and_nobody_wins(write_run: WriteRun, tmp_path: Path) -> None:
    paths = make(write_run, one=fingerprint(), two=fingerprint(1), three=fingerprint())
    runs = read_runs(paths)
    sentence = (
        "These runs were not tested on the same rows with the same labels, and are not ranked against each other: "
        "one, three (A); two (B)."
    )
    assert compare_runs(runs).notes == (sentence,)
    text = printed(paths)
    assert sentence in text
    for name, letter in (("one", "A"), ("two", "B"), ("three", "A")):
        assert f"{name} (test rows {letter})" in text
    write_report(runs, tmp_path / "page.html", [TARGET])
    page = (tmp_path / "page.html").read_text()
    assert sentence in page
    assert "two<small>test rows B</small>" in page
    target = parse_target(TARGET)
    assert (
        headline(runs[:2], [target]) == "2 curves reach AUC 0.7, no two of them with the same data, clients and labels"
    )
    assert headline(runs, [target]).startswith("With the same data, clients and labels three reaches AUC 0.7")
    assert "two" not in headline(runs, [target])
    for axis in AXES:
        assert "comes closest" not in target_finding(runs, parse_target("auc=0.99"), axis)
    assert "comes closest" in target_finding([runs[0], runs[2]], parse_target("auc=0.99"), AXES[0])


@pytest.mark.parametrize(
    ("other", "why"),
    [(None, "one (key {key}); two (no fingerprint)"),
     (fingerprint(key=1), "one (key {key}); two (key {other})")],
)  # fmt: skip
def test_what_cannot_be_told_is_said(write_run: WriteRun, other: Fingerprint | None, why: str) -> None:
    first = fingerprint()
    paths = make(write_run, one=first, two=other)
    words = why.format(key=first.key, other="" if other is None else other.key)
    assert compare_runs(read_runs(paths)).notes == (
        f"It cannot be told whether these were tested on the same rows: {words}.",
    )
    assert "no two of them" in headline(read_runs(paths), [parse_target(TARGET)])
    assert "test rows" not in printed(paths).replace("whether these were tested on the same rows", "")


def test_runs_from_before_fingerprints(write_run: WriteRun) -> None:
    paths = make(write_run, one=None, two=None, three=None)
    assert compare_runs(read_runs(paths)).notes == (
        "It cannot be told whether these were tested on the same rows: one, two, three (no fingerprint).",
    )
    assert compare_runs(read_runs(paths[:1])).notes == ()


def test_all_three_at_once(write_run: WriteRun) -> None:
    paths = make(write_run, one=fingerprint(), two=fingerprint(1), three=None)
    found = rows_apart(read_runs(paths))
    assert found.marks == ("test rows A", "test rows B", "test rows unknown")
    assert len(found.notes) == 2


def test_seeds_on_other_rows_are_not_taken_together(write_run: WriteRun) -> None:
    paths = [keep(write_seed(write_run, "tdcd", seed), fingerprint(seed // 2)) for seed in range(4)]
    assert [len(run.seeds) for run in pool_seeds(read_runs(paths))] == [2, 2]
    pooled = compare_runs(pool_seeds(read_runs(paths)))
    assert [outcome.tested for outcome in pooled.outcomes] == ["test rows A", "test rows B"]


def test_seeds_under_several_keys_are_taken_together_with_a_word(write_run: WriteRun) -> None:
    """As where the machines of a cluster have a key each."""
    paths = [keep(write_seed(write_run, "tdcd", seed), fingerprint(key=seed % 2)) for seed in range(4)]
    (pooled,) = pool_seeds(read_runs(paths))
    assert len(pooled.seeds) == 4
    assert pooled.fingerprint is None
    (note,) = compare_runs([pooled]).notes
    assert note.startswith("It cannot be told whether these were tested on the same rows: tdcd-s0, tdcd-s2 (key ")
    paths += [keep(write_seed(write_run, "more", 9), fingerprint(1))]
    assert [len(run.seeds) for run in pool_seeds(read_runs(paths))] == [4, 0]


def test_a_spoiled_file(write_run: WriteRun) -> None:
    (path,) = make(write_run, one=fingerprint())
    (path / "fingerprint.json").write_text('{"of": "another version"}')
    assert read_runs([path])[0].fingerprint is None
    (path / "fingerprint.json").write_text('{"key": ')
    with pytest.raises(RunError, match=r"fingerprint\.json cannot be read"):
        read_runs([path])
