"""A file of rows to be scored, a batch after the other, as the training's reader reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import polars as pl

from crosshatch.data.reading.tables import ReadingRules, table_batches
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.data.text.text_format import find_format
from crosshatch.data.text.text_records import read_header

PARQUET = ".parquet"


@final
@dataclass(frozen=True)
class FileOfRows:
    """A table in a file, and how the training read its columns: of all that are needed this has to be known."""

    path: Path
    asked: ReadingRules

    def batches(self, rows: int) -> Iterator[pl.DataFrame]:
        """Frames of about so many rows, in order; ids are text, as they are written."""
        as_written = dict.fromkeys(self.asked.ids, ColumnReading("text", nulls=()))
        readings = {**self.asked.readings, **as_written}
        yield from table_batches(self.path, replace(self.asked, ids=frozenset(), readings=readings), rows)

    @property
    def is_plain(self) -> bool:
        """Whether every column has a name of its own."""
        if self.path.suffix.lower() == PARQUET:
            return True
        names = read_header(self.path, find_format(self.path, self.asked.csv))
        return all(names) and len(set(names)) == len(names)
