"""What `predict` says of rows that are unlike those of training; and nothing of those that are like them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch import load_run
from crosshatch.data.encoding.encode_table import usual_values
from crosshatch.errors import DataError
from crosshatch.predict.noticed import NumbersSeen
from tests.cli.conftest import command  # noqa: F401 - a fixture
from tests.predict.cases import people, sequence_case, table_case, trained
from tests.support.command_line import Command


@pytest.fixture(name="made", scope="module", params=[True, False], ids=["standardised", "as they are"])
def made_run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("made")
    case = table_case(folder, "binary", None, standardise=request.param)
    known = people(300, target="binary", first=0).with_columns(year=pl.lit(2024))
    known.write_csv(folder / "people.csv")
    known[:40].with_columns(pl.col("id") + 5000).write_csv(folder / "test.csv")
    case.tables["federation"]["silos"][1]["columns"].append("year")
    trained(folder, case, algorithm={"name": "tdcd", "step_size": 1e-6})
    return folder


def new_rows(rows: int = 1000, first: int = 10_000) -> pl.DataFrame:
    return people(rows, target="binary", first=first).drop("y").with_columns(year=pl.lit(2024))


def notes(made: Path, frame: pl.DataFrame) -> list[str]:
    """The same lines from a table, from a file at once and from a file as it is read."""
    run = load_run(made / "run")
    frame.write_csv(made / "rows.csv")
    found = run.predict(made / "rows.csv").notes
    lines = run.predict_into(made / "scores.csv", made / "rows.csv").notes
    assert tuple(line.partition(": ")[2] for line in lines) == found
    assert [note.partition(": ")[2] for note in run.predict(frame).notes] == [
        note.removeprefix(f"{made / 'rows.csv'}: ") for note in found
    ]
    return [line.replace(f"{made / 'rows.csv'}: ", "") for line in lines]


def test_nothing_is_said_of_rows_like_those_of_training(made: Path) -> None:
    assert notes(made, new_rows()) == []
    assert notes(made, new_rows(1)) == []
    assert notes(made, new_rows(20_000)) == []


@pytest.mark.parametrize("factor", [1000, 1 / 1000, 100, 1 / 100])
def test_another_unit(made: Path, factor: float) -> None:
    (line,) = notes(made, new_rows().with_columns(pl.col("age") * factor))
    assert line.startswith("warning: column 'age': ")
    typical = f"{max(factor, 1 / factor):,.0f} times {'larger' if factor > 1 else 'smaller'}"
    assert f"are typically about {typical} than in training (mean " in line
    assert line.endswith("in training): another unit?")
    if factor > 1:
        assert "values lie more than 6 deviations from the mean of training and they" in line


def test_one_row_in_another_unit(made: Path) -> None:
    (line,) = notes(made, new_rows(1).with_columns(age=pl.lit(41_000.0)))
    assert line.startswith("warning: column 'age': its only value lies more than 6")


def test_the_heaviest_comes_first(made: Path) -> None:
    rows = new_rows().with_columns(
        pl.col("age") * 1000,
        colour=pl.when(pl.int_range(pl.len()) < 30).then(pl.lit("violet")).otherwise(pl.col("colour")),
        income=pl.when(pl.int_range(pl.len()) < 600).then(None).otherwise(pl.col("income")),
        year=pl.when(pl.int_range(pl.len()) < 100).then(2025).otherwise(2024),
        hobby=pl.lit("chess"),
    )
    found = notes(made, rows)
    assert [line.split(":")[0] for line in found] == ["warning", "warning", "note", "note", "note"]
    assert "'age'" in found[0]
    assert found[1].startswith("warning: column 'year': never varied in training, and 100 of 1,000 values differ")
    assert found[2].startswith("note: column 'income': ")
    assert "values are missing; what training fitted stands in for them" in found[2]
    count = rows["colour"].drop_nulls().len()
    assert found[3] == (
        f"note: column 'colour': 30 of {count} values are categories that training did not have: 'violet' (30); they "
        "count as none of the known ones"
    )
    assert found[4] == "note: not needed, and not looked at: 'hobby'"


def test_many_new_categories(made: Path) -> None:
    rows = new_rows(3000).with_columns(colour=pl.format("c{}", pl.int_range(pl.len()) // 2))
    (line,) = notes(made, rows)
    assert line.startswith("warning: column 'colour': 3,000 of 3,000 values are categories that training did not have:")
    assert "'c0' (2), 'c1' (2), 'c10' (2), ...; they count" in line


def test_what_is_wrong_is_named(made: Path, command: Command) -> None:  # noqa: F811
    run = load_run(made / "run")
    with pytest.raises(DataError, match=r"has no column 'age', which silo 'a' was trained on .*: add the column"):
        run.predict(new_rows().drop("age"))
    text = new_rows().with_columns(age=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("old")).otherwise(pl.lit("30")))
    with pytest.raises(DataError, match=r"column 'age' is text here, like 'old', and was numbers in training"):
        run.predict(text)
    text.write_csv(made / "rows.csv")
    ended = command("predict", made / "run", "--data", made / "rows.csv")
    assert (ended.code, ended.out) == (2, "")
    assert f"{made / 'rows.csv'}: column 'age' has 'old' in row 8, and it holds numbers: correct it" in ended.err


def test_only_averages_are_kept(made: Path) -> None:
    """What was added to a silo's file for these notes, from its training rows by hand."""
    rows = pl.read_csv(made / "people.csv", schema_overrides={"colour": pl.String}, null_values="")
    age = rows["age"].to_numpy()
    columns = json.loads((made / "run" / "model" / "a.json").read_text())["preparation"]["columns"]
    usual = next(column["usual"] for column in columns if column["name"] == "age")
    assert usual == pytest.approx(
        {
            "mean": age.mean(),
            "deviation": age.std(),
            "size": np.log10(np.abs(age)).mean(),
            "size_deviation": np.log10(np.abs(age)).std(),
        }
    )


def test_sequences(tmp_path: Path) -> None:
    case = sequence_case(tmp_path)
    out, _ = trained(tmp_path, case)
    run = load_run(out)
    assert run.predict(tmp_path / "new.npz").notes == ()
    archive = dict(np.load(tmp_path / "new.npz"))
    archive["x"][:, :, 1] *= 1000
    np.savez(tmp_path / "off.npz", **archive)
    (note,) = run.predict(tmp_path / "off.npz").notes
    assert "column 'q': " in note
    assert "about 1,000 times larger than in training" in note


def test_a_model_of_an_earlier_version_says_less(made: Path) -> None:
    path = made / "run" / "model" / "a.json"
    kept = path.read_text()
    content: dict[str, Any] = json.loads(kept)
    for column in content["preparation"]["columns"]:
        column.pop("usual", None)
    path.write_text(json.dumps(content))
    try:
        assert notes(made, new_rows().with_columns(pl.col("age") * 1000)) == []
    finally:
        path.write_text(kept)


Numbers = st.lists(st.floats(-1e12, 1e12, allow_subnormal=False), min_size=1, max_size=60)


@given(Numbers, st.integers(1, 7))
def test_training_rows_are_never_odd(values: list[float], pieces: int) -> None:
    """However they are distributed: not more than one in 36 can lie beyond six deviations."""
    array = np.array(values)
    usual = usual_values(array)
    assert usual is not None
    seen = NumbersSeen(usual)
    for piece in np.array_split(array, pieces):
        seen.see(piece)
    assert seen.weigh() is None
