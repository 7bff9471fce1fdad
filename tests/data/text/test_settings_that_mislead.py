"""Settings of text files that named what is not there, or changed what counts without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosshatch.cli.show_check import _file_line
from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import CsvSettings, DataSettings, FederationSettings, SiloSettings
from crosshatch.data.reading.one_file import Wanted, read_own_table
from crosshatch.data.reading.tables import ReadingRules, read_table
from crosshatch.errors import CrosshatchError, DataError

ROWS = "id;age;code;y\n" + "".join(f"{i};{20 + i};00{i % 7};{i % 2}\n" for i in range(1, 31))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.csv"
    found.write_text(ROWS)
    return found


def test_numbers_names_columns_that_are_there(path: Path) -> None:
    good = DataSettings(path=str(path), id="id", label="y", csv=CsvSettings(numbers=("code",)))
    assert load_dataset(good).train.x["code"].dtype.is_numeric()  # type: ignore[union-attr]
    with pytest.raises(CrosshatchError, match=r"data\.csv\.numbers: unknown column 'cod': did you mean 'code'"):
        load_dataset(DataSettings(path=str(path), id="id", label="y", csv=CsvSettings(numbers=("cod",))))


@pytest.mark.parametrize("name", ["code", "zip"])
def test_numbers_of_one_silo_or_of_all(path: Path, name: str) -> None:
    """What data.csv names is in one of the files; what a silo names is in its own."""
    other = path.with_name("b.csv")
    other.write_text("id;zip\n" + "".join(f"{i};0{i % 5}\n" for i in range(1, 31)))
    silos = tuple(SiloSettings(name=file.stem, path=str(file)) for file in (path, other))
    settings = DataSettings(id="id", label="y", csv=CsvSettings(numbers=(name,)))
    assert len(load_dataset(settings, federation=FederationSettings(silos=silos)).train)
    own = tuple(SiloSettings(name=s.name, path=s.path, csv=CsvSettings(numbers=(name,))) for s in silos)
    lacking = "b" if name == "code" else "a"
    with pytest.raises(CrosshatchError, match=f"csv.numbers of silo '{lacking}': unknown column '{name}'"):
        load_dataset(DataSettings(id="id", label="y"), federation=FederationSettings(silos=own))


def test_words_that_no_longer_count_as_missing_are_said(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("town,n\nBonn,1\nNA,2\nk.A.,3\n")
    by_default = "\n".join(map(str, read_table(file, ReadingRules()).notes))
    assert "the word 'NA' (once) counts as missing" in by_default
    named = read_table(file, ReadingRules(CsvSettings(nulls=("k.A.",))))
    assert named.frame["town"].to_list() == ["Bonn", "NA", None]
    assert "column 'town': 'NA' (once) is a category of its own" in "\n".join(map(str, named.notes))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b;c\n1;2,5;x\n2;3,5;y\n", "decimal commas"),  # whole numbers have no mark
        ("a,b,c\n1,2.5,x\n2,3.5,y\n", "decimal points"),
        ("a,c\n1,x\n2,y\n", "whole numbers"),
        ("c,d\nx,y\nz,y\n", "no numbers"),
    ],
)
def test_decimal_marks_are_those_that_are_there(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text(text)
    assert f", {words}" in _file_line(read_own_table(file, Wanted(ReadingRules())).seen)


@pytest.mark.parametrize("separator", [",", "tab", "|"])
def test_a_wrong_separator_is_named(path: Path, separator: str) -> None:
    with pytest.raises(DataError, match="makes a single column of the first line, 'id;age;code;y', which has semi"):
        read_table(path, ReadingRules(CsvSettings(separator=separator)))


def test_a_file_of_one_column_is_one(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n1\n2\n")
    assert read_table(file, ReadingRules(CsvSettings(separator=";"))).frame["a"].to_list() == [1, 2]
