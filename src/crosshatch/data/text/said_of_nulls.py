"""Which words counted as missing values, and how often: nobody shall lose Namibia without a word."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import polars as pl

from crosshatch.data.notes import CHOSEN, PLAIN, Note, listed, times
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.data.text.null_words import AMONG_NUMBERS, PERHAPS


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
    return (
        [(str(word), int(count)) for word, count in found.alias("value").value_counts(sort=True).iter_rows()]
        if len(found)
        else []
    )
