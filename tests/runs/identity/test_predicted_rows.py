"""Scores of a run's own test rows are of the rows that it was tested on, or of none."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from crosshatch.errors import RunError
from crosshatch.runs.train import train
from crosshatch.runs.trained.load_run import load_run
from tests.support.resumed_data import config, table


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run, in the folder `run` beside its file with the training rows and the other with test rows."""
    table()[:60].write_csv(tmp_path / "rows.csv")
    table()[60:].write_csv(tmp_path / "test.csv")
    train(config(tmp_path, 2, test_path=str(tmp_path / "test.csv")), out=tmp_path / "run")
    return tmp_path


CHANGES: list[tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    (lambda frame: frame[:-1], "it has 79 rows instead of 80"),
    (lambda frame: frame.with_columns(c=pl.col("c") + 1), "column 'c' has other values"),
    (lambda frame: frame.with_columns(y=1 - pl.col("y")), "labels differ"),
    (lambda frame: frame.with_columns(id=pl.col("id") + 1000), "the ids of the rows differ"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_other_rows_are_refused(trained: Path, change: Callable[[pl.DataFrame], pl.DataFrame], words: str) -> None:
    change(table()[60:]).write_csv(trained / "test.csv")
    with pytest.raises(RunError, match="the test rows have changed since the run in") as error:
        load_run(trained / "run").predict()
    assert words in str(error.value)
    assert "or give rows by --data" in str(error.value)


def test_training_rows_do_not_count(trained: Path) -> None:
    before = load_run(trained / "run").predict().csv
    table()[:60].with_columns(c=pl.col("c") + 1).write_csv(trained / "rows.csv")
    table()[60:][::-1].write_csv(trained / "test.csv")
    after = load_run(trained / "run").predict().csv
    assert pl.read_csv(io.BytesIO(before)).equals(pl.read_csv(io.BytesIO(after)).sort("id"))


def test_another_split_of_one_file_is_noticed(tmp_path: Path) -> None:
    """The rows to test on are drawn by their places: in another order they are others."""
    table().write_csv(tmp_path / "rows.csv")
    train(config(tmp_path, 2), out=tmp_path / "run")
    table()[::-1].write_csv(tmp_path / "rows.csv")
    with pytest.raises(RunError, match="other rows are trained, validated or tested on"):
        load_run(tmp_path / "run").predict()


def test_another_key_cannot_tell(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(trained / "another.key"))
    prepared = load_run(trained / "run").prepare()
    assert prepared.note.startswith("cannot tell whether these are the test rows that the run in")
    assert prepared.note.endswith("their fingerprint has another key")
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(trained / "rows.csv" / "no.key"))
    assert "name a file that can be written by CROSSHATCH_KEY_FILE" in load_run(trained / "run").prepare().note


def test_rows_that_are_given_need_no_fingerprint(trained: Path) -> None:
    (trained / "run" / "fingerprint.json").unlink()
    run = load_run(trained / "run")
    assert run.prepare(trained / "test.csv").note == ""
    assert run.prepare().note.endswith("it has no fingerprint of them")
