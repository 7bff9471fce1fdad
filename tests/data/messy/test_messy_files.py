"""Messy files: nothing is misread without a line that says so, and new rows are read as those of the training."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from crosshatch import load_run, read_config, train
from crosshatch.cli.app import main
from crosshatch.errors import DataError
from crosshatch.runs.checking.check import make_check
from tests.data.messy.messy_files import MESSY, Messy


def write(folder: Path, messy: Messy) -> Path:
    (folder / "messy.csv").write_bytes(messy.content)
    settings = {"path": "messy.csv", "label": "label", **messy.settings}
    rows = "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items())
    path = folder / "messy.toml"
    path.write_text(
        f"[data]\n{rows}\n[algorithm]\nname = 'fedbcd'\n[federation]\nsilos = 1\n[run]\nrounds = 2\nthreads = 1\n"
    )
    return path


@pytest.mark.parametrize("messy", MESSY, ids=lambda messy: messy.name)
def test_everything_is_said(tmp_path: Path, messy: Messy) -> None:
    check = make_check(read_config(write(tmp_path, messy)))
    said = "\n".join(map(str, check.notes))
    assert [line for line in messy.says if line not in said] == []
    found = {column.name: column.kind for file in check.files for column in file.columns}
    assert {name: found.get(name) for name in messy.kinds} == messy.kinds
    assert [note.weight for note in check.notes] == sorted((note.weight for note in check.notes), reverse=True)


@pytest.mark.parametrize("messy", MESSY, ids=lambda messy: messy.name)
def test_new_rows_are_read_as_those_of_the_training(tmp_path: Path, messy: Messy) -> None:
    """The test rows of a run, given again in the messy file itself, have the scores they had."""
    config = read_config(write(tmp_path, messy))
    out = train(config, out=tmp_path / "run").path
    run = load_run(out)
    by_file = run.predict(tmp_path / "messy.csv").frame
    tested = run.predict().frame
    if messy.settings.get("id") is None:
        assert by_file.height >= tested.height  # without ids rows are counted, each time from 1
        scores = set(by_file["score"].to_list())
        assert set(tested["score"].to_list()) <= scores
        return
    joined = tested.join(by_file, on="id", suffix=" of file")
    assert joined.height == tested.height
    assert (joined["score"] == joined["score of file"]).all()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    path = str(write(tmp_path, MESSY[0]))
    with pytest.raises(SystemExit) as ended:
        main(["check", path])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    for part in ("120 rows, 5 columns; cp1252, semicolons, decimal commas", "Kontostand", "rows: 96 for training, 24"):
        assert part in " ".join(shown.split())
    assert not list(tmp_path.glob("runs"))
    with pytest.raises(SystemExit) as ended:
        main(["check", path, "--strict"])
    assert ended.value.code == 1
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["check", path, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"]["training"], found["files"][0]["encoding"]) == (96, "cp1252")
    assert found["round"]["bytes"] == 0  # one silo has nobody to talk to
    with pytest.raises(SystemExit) as ended:
        main(["check", path, "--set", "data.label=gone"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_a_round_sends_what_it_sends_in_training(tmp_path: Path) -> None:
    """Named sets too; and what is said is what a run then does."""
    path = tmp_path / "wine.toml"
    path.write_text("[data]\nname = 'wine'\n[federation]\nclients = 3\n[algorithm]\nname = 'tdcd'\nbatch_size = 40\n")
    config = read_config(path, ["run.rounds=3", "run.threads=1"])
    check = make_check(config)
    outcome = train(config, out=tmp_path / "run")
    assert check.round is not None
    assert abs(check.round.bytes - outcome.summary["bytes"] / 3) < 0.05 * check.round.bytes  # batches differ
    assert [one.training + one.test for one in check.classes] == [59, 71, 48]


def test_train_says_the_three_heaviest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, MESSY[6]))
    for quiet in (False, True):
        with pytest.raises(SystemExit):
            main(["train", path, "--out", str(tmp_path / f"run{quiet}"), *(["--quiet"] if quiet else [])])
        shown = capsys.readouterr()
        lines = (shown.err if quiet else shown.out).splitlines()
        warnings = [line for line in lines if line.startswith("warning: ")]
        assert len(warnings) == 2
        assert "another whole number in every row" in warnings[0]
        assert any("more such lines: see them by `crosshatch check`" in line for line in lines) != quiet


def test_a_row_of_totals_has_no_id(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i * 3},{i % 2}\n" for i in range(30))
    (tmp_path / "messy.csv").write_text(f"id,a,y\n{rows}Total,1305,15\n")
    path = tmp_path / "messy.toml"
    path.write_text("data = {path = 'messy.csv', id = 'id', label = 'y'}\nrun.rounds = 1\nalgorithm.name = 'fedbcd'\n")
    with pytest.raises(DataError, match=r"the last row has the id 'Total', like a sum of the others: take it out"):
        make_check(read_config(path))


def test_an_error_tells_what_was_noticed_before(tmp_path: Path) -> None:
    """One class only, because half of the ids are written in another way."""
    rows = "".join(f"{'k' if i % 2 else 'K'}{i},{i},{i % 2}\n" for i in range(30))
    (tmp_path / "one.csv").write_text(f"id,a,y\n{rows}")
    (tmp_path / "two.csv").write_text("id,b\n" + "".join(f"K{i},{i}\n" for i in range(30)))
    path = tmp_path / "two.toml"
    path.write_text(
        "data = {id = 'id', label = 'y'}\nalgorithm = {name = 'fedbcd'}\nrun = {rounds = 1, threads = 1}\n"
        "federation.silos = [{name = 'one', path = 'one.csv'}, {name = 'two', path = 'two.csv'}]\n"
    )
    with pytest.raises(
        DataError, match=r"one class only.*noticed before: 15 of 30 ids are in all files.*30 of 30 would be"
    ):
        make_check(read_config(path))


def test_ids_that_would_be_found_if_written_alike(tmp_path: Path) -> None:
    pl.DataFrame({"id": [f"{i:03}" for i in range(60)], "a": range(60), "y": [i % 2 for i in range(60)]}).write_csv(
        tmp_path / "one.csv"
    )
    pl.DataFrame({"id": range(60), "b": [i * 0.5 for i in range(60)]}).write_csv(tmp_path / "two.csv")
    path = tmp_path / "two.toml"
    path.write_text(
        "data = {id = 'id', label = 'y'}\nalgorithm = {name = 'fedbcd'}\nrun = {rounds = 1, threads = 1}\n"
        "federation.silos = [{name = 'one', path = 'one.csv'}, {name = 'two', path = 'two.csv'}]\n"
    )
    with pytest.raises(
        Exception, match=r"written alike, without leading zeros .*data.csv.numbers\), 60 of 60 would be"
    ):
        make_check(read_config(path))
    assert make_check(read_config(path, ["federation.silos.0.csv.numbers=['id']"])).rows["training"] == 48
