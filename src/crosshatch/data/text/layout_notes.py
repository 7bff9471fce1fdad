"""What is to be said of a text file as a whole: its layout, its header, lines that were left out, spaces."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

from crosshatch.data.data_settings import CsvSettings
from crosshatch.data.notes import CHOSEN, DOUBTFUL, PLAIN, Note, counted, listed, times
from crosshatch.data.text.column_reading import AMONG_NUMBERS, PERHAPS, ColumnReading, is_number
from crosshatch.data.text.text_format import SEPARATORS, TextFormat
from crosshatch.data.text.text_records import LeftOutLines
from crosshatch.errors import DataError

_TOTALS = re.compile(
    r"(grand |sub)?(total|sum|summe|gesamt|gesamtsumme|insgesamt|totale|totaal|somme)s?:?", re.IGNORECASE
)


def said_of_layout(path: Path, layout: TextFormat, given: CsvSettings) -> Iterator[Note]:
    """Anything but UTF-8 and commas, where it was guessed."""
    place = str(path)
    if layout.undecodable:
        yield Note(
            "encoding", DOUBTFUL, place,
            f"not UTF-8 ({layout.undecodable}), read as {layout.encoding}: if letters look wrong save it as UTF-8 (in "
            "Excel: CSV UTF-8), or set data.csv.encoding",
        )  # fmt: skip
    elif layout.encoding not in ("utf-8", "utf-8-sig") and given.encoding is None:
        yield Note("encoding", CHOSEN, place, f"read as {layout.encoding} (data.csv.encoding)")
    expected = "\t" if path.suffix.lower() == ".tsv" else ","
    if layout.separator != expected and given.separator is None:
        name = SEPARATORS.get(layout.separator, "spaces" if layout.separator == " " else f"'{layout.separator}'")
        yield Note("separator", CHOSEN, place, f"columns are separated by {name} (data.csv.separator)")
    if texts := [line.strip() for line in layout.above if line.strip()]:
        yield Note(
            "above the header", CHOSEN, place,
            f"{counted(len(layout.above), 'line')} above the header left out, '{texts[0][:60]}' (data.csv.skip)",
        )  # fmt: skip


def said_of_lines(path: Path, left_out: LeftOutLines, rows: int, *, comment_given: bool) -> Iterator[Note]:
    """Lines that were left out; empty ones at the end need no word."""
    middle = [
        number for i, number in enumerate(left_out.blank) if left_out.last_line - number >= len(left_out.blank) - i
    ]
    if middle:
        yield Note(
            "blank lines", CHOSEN, str(path),
            f"{counted(len(middle), 'empty line')} between rows left out, first line {middle[0]}; {rows:,} rows remain",
        )  # fmt: skip
    if left_out.comments and not comment_given:
        yield Note(
            "comments", CHOSEN, str(path),
            f"{counted(len(left_out.comments), 'line')} with # in front left out as comments, first line "
            f"{left_out.comments[0]} (data.csv.comment)",
        )  # fmt: skip


def named_columns(
    path: Path, names: Sequence[str], layout: TextFormat, frame: pl.DataFrame
) -> tuple[list[str], list[Note]]:
    """A name for every column of a frame, empty for those to be left out; a header that is none is refused."""
    if layout.header is None:
        _refuse_data(path, names)
    notes: list[Note] = []
    named = []
    for i, name in enumerate(names):
        empty = frame[:, i].null_count() == frame.height or bool(
            frame[:, i].drop_nulls().str.strip_chars().eq("").all()
        )
        if name:
            named.append(name)
        elif empty:
            named.append("")
        else:
            named.append(f"column {i + 1}")
            text = f"column {i + 1} has no name in the header: it is called 'column {i + 1}'"
            notes.append(Note("header", DOUBTFUL, str(path), text))
    for name, count in Counter(named).items():
        if name and count > 1:
            raise DataError(f"{path}: {count} columns are called '{name}': give each a name of its own")
    if "" in named:
        notes.append(
            Note("header", PLAIN, str(path), f"{counted(named.count(''), 'column')} without name and values left out")
        )
    if layout.header is None and _numbers(names):
        text = f"the names of the columns are numbers ({listed(names)}): set data.csv.header = false if these are a row"
        notes.append(Note("header", DOUBTFUL, str(path), text))
    return named, notes


def said_of_spaces(path: Path, spaces: Mapping[str, int]) -> Iterator[Note]:
    """Spaces around values, which are never part of them."""
    if found := {name: count for name, count in spaces.items() if count}:
        yield Note(
            "spaces", PLAIN, str(path),
            f"spaces around {sum(found.values()):,} values (or Excel's =\"\") are taken off, in {listed(list(found))}",
        )  # fmt: skip


def said_of_totals(path: Path, cells: Mapping[str, pl.Series]) -> Iterator[Note]:
    """A last row that is the sum of the others."""
    for name, series in cells.items():
        last = series[-1]
        if last is None or len(series) < 3:
            continue
        if is_total(last) and int((series == last).sum()) == 1:
            yield Note(
                "totals", DOUBTFUL, str(path),
                f"the last row has '{last}' in column '{name}', once in the file: if it is a sum of the others, take "
                "it out; it is read as a row",
            )  # fmt: skip
            return


def is_total(text: str) -> bool:
    """Whether a value says that its row is a sum of others.

    >>> is_total("Grand total"), is_total("Summe:"), is_total("total loss")
    (True, True, False)
    """
    return _TOTALS.fullmatch(text) is not None


def _numbers(names: Sequence[str]) -> list[float]:
    """Those of them that are numbers, where that are at least half of them."""
    points = (name.replace(",", ".") for name in names)
    found = [float(name) for name in points if is_number(name)]
    return found if len(found) >= max(1, len(names) / 2) else []


def _refuse_data(path: Path, names: Sequence[str]) -> None:
    """Refuse a first line of numbers; whole numbers that rise may be years or pixels, and are names."""
    numbers = _numbers(names)
    rise = all(one < other for one, other in pairwise(numbers)) and len(numbers) != 1
    if rise and all(number.is_integer() and number >= 0 for number in numbers):
        return
    raise DataError(
        f"{path}: the first line looks like a row, not like the names of columns ({listed(names)}): add a header line, "
        "or set data.csv.header = false (columns are then called 'column 1' and so on), or true if these are names"
    )


def said_of_nulls(
    place: str, cells_of: Mapping[str, pl.Series], readings: Mapping[str, ColumnReading], unsaid: Collection[str]
) -> Iterator[Note]:
    """Of every column but those that nobody uses."""
    among: dict[str, list[str]] = {}
    for name, reading in readings.items():
        if name in unsaid:
            continue
        cells = cells_of[name]
        for word, count in null_counts(cells, reading.null_words):
            if reading.kind != "text":
                among.setdefault(word, []).append(f"'{name}' ({count})")
            elif reading.nulls is None:
                yield Note(
                    "null word", CHOSEN, place,
                    f"column '{name}': the word '{word}' ({times(count)}) counts as missing: set data.csv.nulls = [] "
                    "if it is a value",
                )  # fmt: skip
        if reading.kind == "text":
            # who names other words may not know that the usual ones then are none; who names no words does
            usual = AMONG_NUMBERS if reading.nulls else PERHAPS
            words = tuple(word for word in usual if word not in reading.null_words)
            for word, count in null_counts(cells, words):
                yield Note(
                    "perhaps null", PLAIN, place,
                    f"column '{name}': '{word}' ({times(count)}) is a category of its own: name it in data.csv.nulls "
                    "if it means a missing value",
                )  # fmt: skip
    for word, places in among.items():
        yield Note("null word", PLAIN, place, f"'{word}' counts as missing among numbers: {listed(places, '')}")


def null_counts(cells: pl.Series, words: tuple[str, ...]) -> list[tuple[str, int]]:
    """Which of these words are in a column, and how often."""
    found = cells.filter(cells.is_in(words)) if words else cells.clear()
    return [(str(word), int(count)) for word, count in found.alias("value").value_counts(sort=True).iter_rows()]
