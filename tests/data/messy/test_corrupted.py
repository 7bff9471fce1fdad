"""A clean file with one thing spoiled, at random: it is refused, or a line says what was made of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import DataSettings
from crosshatch.errors import DataError

Rows = list[list[str]]
HEADER = "id,number,colour,count,day,label"
ORDINARY = {"date format", "few test rows"}


def clean(draw: random.Random) -> Rows:
    return [
        [
            str(i), f"{draw.gauss(0, 50):.2f}", draw.choice(["red", "blue"]), str(draw.randrange(5)),
            f"2021-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}", str(i % 2),
        ]
        for i in range(40)
    ]  # fmt: skip


def put(values: list[str], places: tuple[int, ...] = (1, 2, 3, 4)) -> Callable[[Rows, random.Random], None]:
    def spoil(rows: Rows, draw: random.Random) -> None:
        draw.choice(rows)[draw.choice(places)] = draw.choice(values)

    return spoil


def drop(rows: Rows, draw: random.Random) -> None:
    del draw.choice(rows)[draw.randrange(1, 5)]


def add(rows: Rows, draw: random.Random) -> None:
    draw.choice(rows).insert(draw.randrange(1, 5), "7")


def spaces(rows: Rows, draw: random.Random) -> None:
    row, place = draw.choice(rows), draw.randrange(1, 5)
    row[place] = f" {row[place]} "


def line(text: str) -> Callable[[Rows, random.Random], None]:
    def spoil(rows: Rows, draw: random.Random) -> None:
        rows.insert(draw.randrange(1, len(rows)), text.split(","))

    return spoil


SPOILED: dict[str, Callable[[Rows, random.Random], None]] = {
    "a word": put(["abc", "1.2.3", "∞", "0x1F", "2021-02-31"]),
    "an error of Excel's": put(["#REF!", "#DIV/0!", "#N/A"]),
    "a null word": put(["NA", "null", "-", "?", "n/a", "None"]),
    "a decimal comma": put(['"1,5"', '"-0,25"'], (1,)),
    "thousands": put(['"1,234.50"', "1'234.5"], (1,)),
    "a unit": put(["5%", "12 €", "7 kg"], (1, 3)),
    "brackets": put(["(12.50)", "12.50-"], (1,)),
    "zeros": put(["03", "007"], (3,)),
    "capitals": put(["RED", "Blue"], (2,)),
    "an open quote": put(['"red'], (2,)),
    "a value less": drop,
    "a value more": add,
    "spaces": spaces,
    "a blank line": line(""),
    "a comment": line("# half time"),
    "the header again": line(HEADER),
    "another separator": line("99;1.5;red;1;2021-01-01;1"),
    "a placeholder": put(["-99999"], (1, 3)),
}


@pytest.mark.parametrize("name", SPOILED)
def test_nothing_is_spoiled_in_silence(tmp_path: Path, name: str) -> None:
    for seed in range(12):
        draw = random.Random(seed)
        rows = clean(draw)
        SPOILED[name](rows, draw)
        (tmp_path / "a.csv").write_text("\n".join([HEADER, *(",".join(row) for row in rows), ""]), encoding="utf-8")
        try:
            dataset = load_dataset(
                DataSettings(path="a.csv", id="id", label="label", impute="median"), base=tmp_path
            )  # fmt: skip
        except DataError:
            continue
        assert {note.code for note in dataset.notes} - ORDINARY, f"seed {seed}: nothing was said"


def test_a_clean_file_needs_no_words(tmp_path: Path) -> None:
    rows = clean(random.Random(0))
    (tmp_path / "a.csv").write_text("\n".join([HEADER, *(",".join(row) for row in rows), ""]))
    dataset = load_dataset(DataSettings(path="a.csv", id="id", label="label"), base=tmp_path)
    assert {note.code for note in dataset.notes} <= ORDINARY
