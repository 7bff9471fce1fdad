"""Rows to be scored: read as training reads its files, but without labels; and a silo's part of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.data_settings import CsvSettings
from crosshatch.data.dataset import Array, NewRows
from crosshatch.data.encoding.encode_image import ImageEncoder
from crosshatch.data.encoding.encode_part import Encoder
from crosshatch.data.encoding.encode_sequence import SequenceEncoder
from crosshatch.data.encoding.encode_table import CategoricalColumn, TableEncoder
from crosshatch.data.encoding.summaries import are_summaries, summarise
from crosshatch.data.reading.archive import read_unlabelled
from crosshatch.data.reading.one_file import once_each, unique_ids
from crosshatch.data.reading.table_files import TABLES
from crosshatch.data.reading.tables import FileOfRows, ReadingRules, read_table, table_batches
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.errors import DataError, first_few
from crosshatch.partition.features import unknown

ARCHIVE = ".npz"


def read_rows(path: Path, asked: ReadingRules | None = None, *, known: bool = False) -> NewRows:
    """All columns of a table, read as in training; or the arrays of an npz archive.

    `known`: the readings of all columns that are needed are asked for. Others are not looked into then.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder: name the file with the rows to score, .csv, .tsv, .parquet or .npz")
    if path.suffix.lower() not in (*TABLES, ARCHIVE):
        raise DataError(f"{path}: unsupported kind of file '{path.suffix}': use .csv, .tsv, .parquet or .npz")
    if not path.is_file():
        raise DataError(f"no file {path}: check the path")
    if path.suffix.lower() == ARCHIVE:
        rows = read_unlabelled(path)
        return rows if rows.ids is None else replace(rows, ids=once_each(rows.ids, path, "array 'id'"))
    if known and asked is not None and FileOfRows(path, asked).is_plain:
        frames = list(table_batches(path, asked))  # as values at once: text of all cells would take much more memory
        if frames:
            return NewRows(str(path), pl.concat(frames))
    return NewRows(str(path), read_table(path, asked or ReadingRules()).frame)


def as_in_training(encoders: Iterable[tuple[str, Encoder]], ids: Collection[str]) -> ReadingRules:
    """How the training read the columns of these silos, also by the names they have in a silo's own file.

    A name that two silos have, each in its own file, is left to the file where they read it differently.
    """
    text: set[str] = set()
    others: set[str] = set()
    readings: dict[str, ColumnReading] = {}
    torn: set[str] = set()
    csv = CsvSettings()
    for silo, encoder in encoders:
        if not isinstance(encoder, TableEncoder):
            continue
        csv = csv if encoder.csv is None else csv.over(encoder.csv)
        for column in encoder.columns:
            is_text = isinstance(column, CategoricalColumn) and column.text
            names = (column.name, own_name(column.name, silo))
            (text if is_text else others).update(names)
            reading = encoder.readings.get(column.name)
            if reading is not None:
                torn |= {name for name in names if readings.get(name, reading) != reading}
                readings |= dict.fromkeys(names, reading)
    kept = {name: reading for name, reading in readings.items() if name not in torn}
    return ReadingRules(csv, frozenset(ids), text=frozenset(text - others), readings=kept)


def is_known(asked: ReadingRules, encoders: Iterable[tuple[str, Encoder]]) -> bool:
    """Whether it is known of every column that these silos need how the training read it."""
    return all(
        isinstance(encoder, TableEncoder)
        and all(
            name in asked.readings for column in encoder.columns for name in {column.name, own_name(column.name, silo)}
        )
        for silo, encoder in encoders
    )


def id_name(rows: NewRows, names: Sequence[str]) -> str | None:
    """The first of these columns that is there; None where none is asked for, or the rows are no table."""
    if not isinstance(rows.x, pl.DataFrame) or not names:
        return None
    found = [name for name in names if name in rows.x.columns]
    if not found:
        raise DataError(str(unknown("id column", names[0], rows.x.columns, rows.place)))
    return found[0]


def ids_of(rows: NewRows, names: Sequence[str]) -> Array | None:
    """The ids (n,), each once: from the first of these columns that is there, or from the archive; None without any."""
    if rows.ids is not None or (column := id_name(rows, names)) is None:
        return rows.ids
    assert isinstance(rows.x, pl.DataFrame)
    return unique_ids(rows.x, column, rows.place)


def part_of(rows: NewRows, encoder: Encoder, silo: str, *, own: bool) -> pl.DataFrame | Array:
    """The raw columns of a silo, as its encoder takes them; `own`: the rows hold nothing but this silo's columns.

    Columns are found by name. Where an array of a silo's own names none they are in the order of training, and images
    may be the silo's window alone.
    """
    if isinstance(encoder, ImageEncoder):
        return _pixels(rows, encoder, silo, own=own)
    if isinstance(encoder, SequenceEncoder):
        x = rows.x
        if isinstance(x, pl.DataFrame) or x.ndim != 3 or x.shape[1] != encoder.steps:
            raise DataError(
                f"{rows.place}: {_describe(x)}, but silo '{silo}' takes sequences of {encoder.steps} steps: give an "
                f"array (rows, {encoder.steps}, columns)"
            )
        return x[..., _positions(rows, encoder.names, silo, own=own)]
    names = [column.name for column in encoder.columns]
    frame = rows.x if isinstance(rows.x, pl.DataFrame) else rows.static
    if isinstance(rows.x, np.ndarray) and rows.x.ndim == 3 and are_summaries(names):  # as data.summaries made them
        frame = summarise(rows.x, rows.columns or [f"x{i}" for i in range(rows.x.shape[-1])])
    if frame is not None:
        found = [_find(name, silo, frame.columns, rows.place) for name in names]
        return frame.select(pl.col(theirs).alias(name) for name, theirs in zip(names, found, strict=True))
    assert isinstance(rows.x, np.ndarray)
    if rows.x.ndim != 2:
        raise DataError(
            f"{rows.place}: {_describe(rows.x)}, but silo '{silo}' takes a table with columns {first_few(names)}: give "
            "one"
        )
    positions = _positions(rows, names, silo, own=own)
    return pl.DataFrame({name: rows.x[:, at] for name, at in zip(names, positions, strict=True)})


def _positions(rows: NewRows, names: Sequence[str], silo: str, *, own: bool) -> list[int]:
    count = rows.x.shape[-1]
    if own and not rows.columns and count == len(names):
        return list(range(count))
    known = rows.columns or tuple(f"x{i}" for i in range(count))
    return [known.index(_find(name, silo, known, rows.place)) for name in names]


def _find(name: str, silo: str, known: Sequence[str], place: str) -> str:
    for candidate in (name, own_name(name, silo)):
        if candidate in known:
            return candidate
    raise DataError(
        f"{place} has no column '{own_name(name, silo)}', which silo '{silo}' was trained on (it has "
        f"{first_few(known)}): add the column, or give the file that has it too"
    )


def own_name(name: str, silo: str) -> str:
    """A name that is in several files was told apart as silo.column."""
    return name.removeprefix(f"{silo}.")


def _pixels(rows: NewRows, encoder: ImageEncoder, silo: str, *, own: bool) -> Array:
    window, x = encoder.window, rows.x
    part = (window.bottom - window.top, window.right - window.left, *encoder.image[2:])
    if isinstance(x, np.ndarray) and x.shape[1:] == encoder.image:
        return x[:, window.top : window.bottom, window.left : window.right]
    if isinstance(x, np.ndarray) and own and x.shape[1:] == part:
        return x
    also = f", or of the {_times(part)} that the silo holds" if own and part != encoder.image else ""
    raise DataError(
        f"{rows.place}: {_describe(x)}, but silo '{silo}' was trained on images of {_times(encoder.image)}: give "
        f"images of that size{also}"
    )


def _describe(x: pl.DataFrame | Array) -> str:
    if isinstance(x, pl.DataFrame):
        return "it is a table"
    return f"its samples are {_times(x.shape[1:])}"


def _times(shape: Sequence[int]) -> str:
    return " x ".join(str(size) for size in shape) or "single numbers"
