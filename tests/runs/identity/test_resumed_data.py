"""A run goes on with the data it was started with, or says what differs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from crosshatch.audit.audited_run import open_run
from crosshatch.data.identity.fingerprint import FINGERPRINT, read_fingerprint
from crosshatch.errors import RunError
from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train
from crosshatch.runs.watcher import Watcher
from tests.support.resumed_data import config, table


class Listener(Watcher):
    """Keeps what it was warned of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warned(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run of two rounds, in the folder `run` beside its file."""
    table().write_csv(tmp_path / "rows.csv")
    train(config(tmp_path, 2), out=tmp_path / "run")
    return tmp_path


CHANGES: list[tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    (lambda frame: frame.with_columns(y=1 - pl.col("y")), "labels differ"),
    (
        lambda frame: frame.with_columns(c=pl.when(pl.col("id") == 7).then(9.5).otherwise("c")),
        "column 'c' has other values",
    ),
    (lambda frame: frame[:-1], "it has 79 rows instead of 80"),
    (
        lambda frame: pl.concat([frame, frame[:1].with_columns(id=pl.lit(500, pl.Int64))]),
        "it has 81 rows instead of 80",
    ),
    (lambda frame: frame.drop("d"), "a column is gone"),
    (lambda frame: frame.with_columns(e=pl.col("a") * 2), "column 'e' is new"),
    (lambda frame: frame.select("id", "b", "a", "c", "d", "y"), "silo 'silo1' has other columns, or in another order"),
    (lambda frame: frame[::-1], "other rows are trained, validated or tested on"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_other_data_are_refused(begun: Path, change: Callable[[pl.DataFrame], pl.DataFrame], words: str) -> None:
    before = {path: path.read_bytes() for path in (begun / "run").rglob("*") if path.is_file()}
    change(table()).write_csv(begun / "rows.csv")
    with pytest.raises(RunError, match=r"the data have changed since the run in .* was started") as error:
        train(config(begun, 4), out=begun / "run", resume=True)
    assert words in str(error.value)
    assert "put back the data it was started with" in str(error.value)
    assert "\n" not in str(error.value)
    assert {path: path.read_bytes() for path in (begun / "run").rglob("*") if path.is_file()} == before
    with pytest.raises(RunError, match="the data have changed"), open_run(begun / "run"):
        pass


def test_the_same_data_in_another_file_go_on(begun: Path) -> None:
    (begun / "rows.csv").write_text((begun / "rows.csv").read_text().replace(",0\n", ",0.0\n"))
    assert train(config(begun, 4), out=begun / "run", resume=True).round == 4


def test_another_key_cannot_tell(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table().with_columns(y=1 - pl.col("y")).write_csv(begun / "rows.csv")
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(begun / "another.key"))
    listener, stored = Listener(), read_fingerprint(begun / "run")
    assert train(config(begun, 4), out=begun / "run", resume=True, watcher=listener).finished
    assert [text.partition(" that")[0] for text in listener.warnings] == ["cannot tell whether these are the data"]
    assert "another key" in listener.warnings[0]
    assert read_fingerprint(begun / "run") == stored


def test_a_run_from_before_fingerprints_goes_on(begun: Path) -> None:
    (begun / "run" / FINGERPRINT).unlink()
    listener = Listener()
    assert train(config(begun, 4), out=begun / "run", resume=True, watcher=listener).finished
    assert len(listener.warnings) == 1
    assert "it has no fingerprint of them" in listener.warnings[0]
    assert read_fingerprint(begun / "run") is None  # nobody knows what it began with


def test_no_place_for_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table().write_csv(tmp_path / "rows.csv")
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(tmp_path / "rows.csv" / "key"))
    listener = Listener()
    assert train(config(tmp_path, 2), out=tmp_path / "run", watcher=listener).finished
    assert len(listener.warnings) == 1
    assert "this run has no fingerprint of its data" in listener.warnings[0]
    assert read_fingerprint(tmp_path / "run") is None


def test_it_is_there_from_the_start(tmp_path: Path) -> None:
    """Also in a run that never finishes."""

    class Stopper(Watcher):
        def advance(self, round: int) -> None:
            if round == 1:
                raise KeyboardInterrupt

    table().write_csv(tmp_path / "rows.csv")
    changed = decode_config(
        {
            "data": {"path": str(tmp_path / "rows.csv"), "label": "y", "id": "id"},
            "algorithm": {"name": "fedbcd", "local_steps": 2, "step_size": 0.1},
            "evaluate": {"every": 1},
            "run": {"name": "small", "rounds": 9, "threads": 1},
        }
    )
    with pytest.raises(KeyboardInterrupt):
        train(changed, out=tmp_path / "run", watcher=Stopper())
    assert read_fingerprint(tmp_path / "run") is not None
    assert not (tmp_path / "run" / "summary.json").exists()
    key = os.environ["CROSSHATCH_KEY_FILE"]
    assert Path(key).read_text().strip() not in (tmp_path / "run" / FINGERPRINT).read_text()


def test_a_fingerprint_that_was_spoiled(begun: Path) -> None:
    (begun / "run" / FINGERPRINT).write_text('{"key": ')
    with pytest.raises(RunError, match=r"fingerprint\.json cannot be read .*: restore it, or remove it"):
        train(config(begun, 4), out=begun / "run", resume=True)


def test_the_models_folder_has_none(begun: Path) -> None:
    assert not list((begun / "run" / "model").glob("*fingerprint*"))
