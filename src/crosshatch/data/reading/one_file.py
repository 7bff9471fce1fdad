"""People's own tables: a file for all silos, its ids and its labels."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.data_settings import DataSettings
from crosshatch.data.dataset import LARGEST, Array, Raw, Samples
from crosshatch.data.looking.column_kinds import look_at
from crosshatch.data.looking.seen import FileSeen
from crosshatch.data.make_dataset import plain_array
from crosshatch.data.notes import DOUBTFUL, Note
from crosshatch.data.reading.table_files import require_table
from crosshatch.data.reading.tables import ReadingRules, Table, read_table
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.data.text.layout_notes import is_total
from crosshatch.errors import DataError
from crosshatch.partition.features import unknown


@dataclass(frozen=True)
class Wanted:
    """What is known of a file to train or test on: how it is read, what its columns are for, whose it is.

    Text in `forced` columns is used whatever it is.
    """

    rules: ReadingRules
    labels: tuple[str, ...] = ()
    forced: frozenset[str] = frozenset()
    silo: str = ""
    purpose: str = "training"


@dataclass(frozen=True)
class OwnTable:
    """A file's rows with what was understood of them; nobody shall train on the columns in `left_out`."""

    frame: pl.DataFrame
    readings: Mapping[str, ColumnReading]
    notes: tuple[Note, ...]
    seen: FileSeen
    left_out: tuple[str, ...]


def read_own_table(path: Path, wanted: Wanted) -> OwnTable:
    """A file to train or test on; numbers too large to train on are refused, but where they are left out."""
    require_table(path)
    return own_table(read_table(path, wanted.rules), wanted)


def own_table(table: Table, wanted: Wanted) -> OwnTable:
    """What is to be said of a table that was read."""
    path, rules = table.path, wanted.rules
    for column in table.frame:
        if column.dtype.is_float() and column.name not in rules.unused:
            _require_moderate(column, path)
    columns, noticed, left_out = look_at(
        table.frame, table.readings, str(path), ids=rules.ids, labels=wanted.labels, unused=rules.unused,
        forced=wanted.forced | rules.codes, examples=table.examples,
    )  # fmt: skip
    layout = table.layout
    seen = FileSeen(
        str(path), wanted.silo, wanted.purpose, table.frame.height, layout.encoding if layout else "",
        layout.separator if layout else "", table.decimal, table.nulls, columns,
    )  # fmt: skip
    notes = table.notes
    if wanted.purpose == "training":
        notes += noticed + mixed_columns(table.frame, rules, path)
    return OwnTable(table.frame, table.readings, notes, seen, left_out)


def _require_moderate(column: pl.Series, path: Path) -> None:
    """Refuse what single precision cannot hold; infinity is refused later, where the column is used."""
    large = (column.abs() > LARGEST) & column.is_finite()
    if large.any():
        row = int(large.arg_true()[0])
        raise DataError(
            f"{path}: column '{column.name}' has {column[row]:.3g} in row {row + 1}, too large to train on "
            f"(at most {LARGEST:.2g}): correct it, give the column in larger units, or leave it out (data.leave_out)"
        )


def wanted_of(settings: DataSettings, forced: Collection[str] = (), first: int | None = None) -> Wanted:
    """Of the one file at data.path, or of about so many first rows of it."""
    ids = frozenset() if settings.id is None else frozenset([settings.id])
    codes, unused = frozenset(settings.categorical), frozenset(settings.leave_out)
    rules = ReadingRules(settings.csv, ids, codes=codes, unused=unused, first=first)
    return Wanted(rules, settings.labels, frozenset(forced))


def read_one_file(settings: DataSettings, base: Path, forced: Collection[str] = ()) -> Raw:
    """All columns from data.path; its id column is optional and not a feature. `forced` ones are asked for by name."""
    assert settings.path is not None
    path = base / settings.path
    wanted = wanted_of(settings, forced)
    table = read_own_table(path, wanted)
    files = [table.seen]
    train, notes = _labelled(table.frame, settings, path), table.notes
    others: dict[str, Samples] = {}
    for kind, name in (("test", settings.test_path), ("validation", settings.validation)):
        if isinstance(name, str):
            other = base / name
            rules = replace(wanted.rules, readings=table.readings)
            further = read_own_table(other, replace(wanted, rules=rules, purpose=kind))
            files.append(further.seen)
            others[kind] = _labelled(further.frame, settings, other)
            notes += further.notes
            same_columns(train, others[kind], path, other)
            no_common_id(train.ids, others[kind].ids, path, other, kind)
    assert isinstance(train.x, pl.DataFrame)
    return Raw(
        path.name, "table", train, others.get("test"), tuple(train.x.columns), notes=notes,
        validation=others.get("validation"), readings=table.readings, files=tuple(files), left_out=table.left_out,
    )  # fmt: skip


def _labelled(frame: pl.DataFrame, settings: DataSettings, path: Path) -> Samples:
    if not settings.labels:
        raise DataError(f"{path}: no label column is named: set data.label to one of its columns")
    for label in settings.labels:
        if label not in frame.columns:
            raise DataError(str(unknown("label column", label, frame.columns, str(path))))
    if settings.id in settings.labels:
        raise DataError(f"{path}: column '{settings.id}' is both data.id and data.label: name two columns")
    y = label_array(frame, settings.labels, path)
    ids = None if settings.id is None else unique_ids(frame, settings.id, path)
    return Samples(frame.drop([*settings.labels, *([] if settings.id is None else [settings.id])]), y, ids)


def label_array(frame: pl.DataFrame, labels: tuple[str, ...], path: Path) -> Array:
    """The labels (n,) of a file, or (n, labels) where there are several."""
    columns = [plain_array(frame[label], f"{path}: label '{label}'") for label in labels]
    if len(columns) == 1:
        return columns[0]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise DataError(f"data.label names '{twice}' twice: name every column once")
    if len({column.dtype.kind in "biuf" for column in columns}) > 1:
        columns = [column.astype(np.str_) for column in columns]  # numbers in one, words in another
    return np.column_stack(columns)


def mixed_columns(frame: pl.DataFrame, rules: ReadingRules, path: Path) -> tuple[Note, ...]:
    """Notes on columns of text in which most values are numbers: a slip in one cell makes categories of them all."""
    notes = []
    for column in frame:
        if column.dtype == pl.String and column.name not in rules.ids | rules.unused | rules.codes:
            known = column.drop_nulls()
            other = known.filter(known.cast(pl.Float64, strict=False).is_null())
            if 0 < len(other) < len(known) / 2:
                counted = "1 value" if len(other) == 1 else f"{len(other)} values"
                text = (
                    f"column '{column.name}' is text because of {counted} like '{other[0]}' among numbers: each of its "
                    "values becomes a category; add words that mean a missing value to data.csv.nulls"
                )
                notes.append(Note("mixed", DOUBTFUL, str(path), text))
    return tuple(notes)


def unique_ids(frame: pl.DataFrame, column: str, path: Path | str) -> Array:
    """The ids of a file (n,): whole numbers or text, each once."""
    if column not in frame.columns:
        raise DataError(str(unknown("id column", column, frame.columns, str(path))))
    ids = plain_array(frame[column], f"{path}: id '{column}'")
    if ids.dtype.kind == "U" and is_total(str(ids[-1])):
        raise DataError(f"{path}: the last row has the id '{ids[-1]}', like a sum of the others: take it out")
    return once_each(ids, path, f"column '{column}'")


def once_each(ids: Array, path: Path | str, where: str) -> Array:
    """Ids (n,) as whole numbers or text, or the refusal of one that occurs twice."""
    whole = ids.dtype.kind == "f" and bool((ids == np.rint(ids)).all())
    if whole or ids.dtype.kind in "iu":
        ids = ids.astype(np.int64)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        twice = values[counts > 1]
        raise DataError(
            f"{path}: id '{twice[0]}' in {where} occurs {counts[counts > 1][0]} times ({len(twice)} such ids): keep "
            "one row per id"
        )
    return ids


def same_columns(train: Samples, test: Samples, path: Path, test_path: Path) -> None:
    """Refuse a test file that lacks a column."""
    assert isinstance(train.x, pl.DataFrame)
    assert isinstance(test.x, pl.DataFrame)
    if absent := [name for name in train.x.columns if name not in test.x.columns]:
        raise DataError(f"{test_path} has no column '{absent[0]}', which {path} has: give both the same columns")


def no_common_id(train: Array | None, test: Array | None, path: Path, test_path: Path, kind: str = "test") -> None:
    """Refuse a row that is trained on and tested on."""
    if train is None or test is None:
        return
    both = np.intersect1d(train.astype(str), test.astype(str))
    if len(both):
        raise DataError(f"id '{both[0]}' is in {path} and in {test_path}: a {kind} row must not be trained on")
