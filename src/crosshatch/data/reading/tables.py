"""A table from a file, CSV, TSV or Parquet: whole, or in batches that are read in the same way."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import polars as pl

from crosshatch.data.data_settings import CsvSettings
from crosshatch.data.notes import Note
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.data.text.layout_notes import (
    named_columns,
    null_counts,
    said_of_layout,
    said_of_lines,
    said_of_spaces,
    said_of_totals,
)
from crosshatch.data.text.text_format import SEPARATORS, TextFormat, find_format
from crosshatch.data.text.text_records import PIECE, LeftOutLines, read_header, text_pieces
from crosshatch.data.text.understand import TextColumns, require_csv, understand
from crosshatch.errors import DataError, one_line

_WHOLE = r"^(0|-?[1-9]\d{0,17})(\.0)?$"  # as pandas writes them where one is missing, too
_PADDED = r"^0*\d{1,18}(\.0)?$"
BATCH = 50_000
PARQUET = ".parquet"


@dataclass(frozen=True)
class ReadingRules:
    """What is known of a file before it is read.

    `ids` become whole numbers only where nothing is lost: 007 is not 7, and 1.10 not 1.1. Columns in `text` stay text,
    whatever is written there; `codes` may be numbers that are categories; nobody uses those in `unused`. `readings` are
    those of an earlier file, the training's, whose columns are read in the same way. `first`: of a table that is read
    whole, about so many rows alone.
    """

    csv: CsvSettings = field(default_factory=CsvSettings)
    ids: frozenset[str] = frozenset()
    text: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    unused: frozenset[str] = frozenset()
    readings: Mapping[str, ColumnReading] = field(default_factory=dict)
    first: int | None = None


@dataclass(frozen=True)
class Table:
    """A file's rows, how its columns were read, and what is to be said of it; `layout` is None for Parquet.

    `nulls` are the words in it that count as missing, `examples` the first value of every column as it is written.
    """

    path: Path
    frame: pl.DataFrame
    readings: Mapping[str, ColumnReading]
    notes: tuple[Note, ...] = ()
    layout: TextFormat | None = None
    nulls: tuple[str, ...] = ()
    examples: Mapping[str, str] = field(default_factory=dict)

    @property
    def decimal(self) -> str:
        """The decimal marks of its numbers, `whole` where these have none; empty for Parquet and without numbers."""
        if self.layout is None:
            return ""
        numbers = {name: one.numbers for name, one in self.readings.items() if one.kind == "number"}
        marks = {
            "." if form is None else form.decimal
            for name, form in numbers.items()
            if name in self.frame.columns and not self.frame[name].dtype.is_integer()
        }
        return " and ".join(sorted(marks)) or ("whole" if numbers else "")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """A DataError that names the file where it cannot be read meanwhile."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} is unreadable: {one_line(error)[:200]}; correct the file or save it again") from error


def read_table(path: Path, asked: ReadingRules) -> Table:
    """A file that is there, with at least one row."""
    with _readable(path):
        if path.suffix.lower() == PARQUET:
            table = typed_table(path, pl.read_parquet(path, n_rows=asked.first))
        else:
            table = _read_text(path, asked)
    if not table.frame.height:
        raise DataError(f"{path} has no rows: it needs a header line and at least one row")
    return table


def table_batches(path: Path, asked: ReadingRules, rows: int = BATCH) -> Iterator[pl.DataFrame]:
    """The same rows as `read_table` gives, in order and in frames of about so many; `asked.readings` say how.

    A column without a reading stays text. Ids are whole numbers in all frames, or in none.
    """
    if path.suffix.lower() == PARQUET:
        lazy = pl.scan_parquet(path)
        with _readable(path):
            count = int(lazy.select(pl.len()).collect().item())
        for start in range(0, count, rows):
            with _readable(path):
                frame = lazy.slice(start, rows).collect()
            yield frame
        return
    layout = find_format(path, asked.csv)
    names = [name or f"column {i + 1}" for i, name in enumerate(read_header(path, layout))]
    whole = frozenset(asked.ids & set(names))
    if whole:
        for piece in text_pieces(path, layout, names, LeftOutLines(), rows):
            cells = {name: piece[:, i].str.strip_chars().alias(name) for i, name in enumerate(names) if name in whole}
            whole = frozenset(name for name in whole if _is_whole(cells[name], asked))
    done = 0
    for piece in text_pieces(path, layout, names, LeftOutLines(), rows):
        cells = {name: _clean(piece[:, i], name)[0] for i, name in enumerate(names) if name}
        readings = {name: _reading(name, asked) or ColumnReading("text") for name in cells}
        frame = pl.DataFrame([readings[name].apply(series, str(path), done) for name, series in cells.items()])
        done += frame.height
        yield _with_whole(frame, whole)


def typed_table(path: Path, frame: pl.DataFrame) -> Table:
    """Of rows whose columns have types already."""
    readings = {}
    for column in frame:
        numeric = column.dtype.is_numeric() or column.dtype.is_temporal()
        kind = "number" if numeric else "yes or no" if column.dtype == pl.Boolean else "text"
        readings[column.name] = ColumnReading(kind, nulls=() if kind == "text" else None)  # type: ignore[arg-type]
    return Table(path, frame, readings)


def _read_text(path: Path, asked: ReadingRules) -> Table:
    require_csv(asked.csv, "data.csv")
    layout = find_format(path, asked.csv)
    header = read_header(path, layout)
    counted = LeftOutLines()
    most = None if asked.first is None else max(1, asked.first // PIECE)
    pieces = list(islice(text_pieces(path, layout, header, counted), most))
    if not pieces:
        raise DataError(f"{path} has no rows: it needs a header line and at least one row")
    frame = pl.concat(pieces)
    names, notes = named_columns(path, header, layout, frame)
    cells: dict[str, pl.Series] = {}
    spaces: dict[str, int] = {}
    for i, name in enumerate(names):
        if name:
            cells[name], spaces[name] = _clean(frame[:, i], name)
    del frame, pieces
    _require_separator(path, header, layout, asked.csv)
    notes += said_of_layout(path, layout, asked.csv)
    rows = len(next(iter(cells.values()))) if cells else 0
    notes += [
        *said_of_lines(path, counted, rows, comment_given=asked.csv.comment is not None),
        *said_of_spaces(path, spaces),
        *said_of_totals(path, cells),
    ]
    readings = {name: reading for name in cells if (reading := _reading(name, asked)) is not None}
    guessed, more = understand(
        TextColumns(
            str(path), {name: series for name, series in cells.items() if name not in readings}, asked.csv,
            layout.separator, asked.unused, asked.codes,
        )
    )  # fmt: skip
    readings |= guessed
    nulls = {word for name, one in cells.items() for word, _ in null_counts(one, readings[name].null_words)}
    examples = {name: str(known[0]) for name, one in cells.items() if len(known := one.drop_nulls())}
    read = pl.DataFrame([readings[name].apply(cells.pop(name), str(path)) for name in list(cells)])
    whole = frozenset(name for name in asked.ids & set(read.columns) if _is_whole(read[name], asked))
    return Table(path, _with_whole(read, whole), readings, (*notes, *more), layout, tuple(sorted(nulls)), examples)


def _require_separator(path: Path, header: Sequence[str], layout: TextFormat, csv: CsvSettings) -> None:
    """Refuse a separator that was set and is not the file's."""
    others = [word for sign, word in SEPARATORS.items() if sign != layout.separator and sign in header[0]]
    if csv.separator is not None and len(header) == 1 and others:
        raise DataError(
            f"{path}: data.csv.separator = '{csv.separator}' makes a single column of the first line, "
            f"'{header[0][:40]}', which has {others[0]}: correct the setting, or leave it out"
        )


def _reading(name: str, asked: ReadingRules) -> ColumnReading | None:
    """What is known of a column before."""
    if name in asked.ids:
        return ColumnReading("text", nulls=())
    if name in asked.readings:
        return asked.readings[name]
    return ColumnReading("text", nulls=asked.csv.nulls) if name in asked.text else None


def _clean(cells: pl.Series, name: str) -> tuple[pl.Series, int]:
    """Cells without spaces around them, null where nothing is left, and how many had such spaces."""
    stripped = cells.str.strip_chars()
    if stripped.str.starts_with('="').any():  # as Excel keeps codes from becoming numbers
        stripped = stripped.str.replace(r'^="(.*)"$', "$1")
    changed = int((stripped != cells).sum())
    empty = stripped == ""
    if empty.any():
        stripped = pl.select(pl.when(~empty).then(stripped)).to_series()
    return stripped.alias(name), changed


def _is_whole(ids: pl.Series, asked: ReadingRules) -> bool:
    """Whether ids are whole numbers; those in data.csv.numbers with zeros before them, too."""
    return bool(ids.str.contains(_PADDED if ids.name in asked.csv.numbers else _WHOLE).all())


def _with_whole(frame: pl.DataFrame, whole: frozenset[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col(list(whole)).str.strip_suffix(".0").cast(pl.Int64)) if whole else frame


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
