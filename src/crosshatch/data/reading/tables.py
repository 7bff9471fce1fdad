"""People's own tables, CSV or Parquet: reading a file, its ids and its labels."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.data_settings import DataSettings
from crosshatch.data.dataset import LARGEST, Array, Samples
from crosshatch.data.make_dataset import Raw, plain_array
from crosshatch.data.reading.sources import require_table
from crosshatch.errors import DataError, one_line
from crosshatch.partition.features import unknown

# What people write for a value they do not have; polars reads NaN by itself.
_WHOLE = r"^(0|-?[1-9]\d{0,17})(\.0)?$"  # as pandas writes them where one is missing, too
_DECIMAL_COMMA = r"^\s*[+-]?\d+,\d+\s*$"
MISSING = ["", "NA", "N/A", "nan", "null", "NULL", "?"]


def read_table(
    path: Path, id_column: str | None, leave_out: Collection[str] = (), categorical: Collection[str] = ()
) -> pl.DataFrame:
    """A .csv, .tsv or .parquet file with at least one row.

    Refused are numbers too large to train on, but in `leave_out`, and with decimal commas, but as `categorical` ones.
    """
    require_table(path)
    frame = read_any_table(path, ids=() if id_column is None else (id_column,))
    for column in frame:
        if column.dtype.is_float() and column.name not in leave_out:
            _require_moderate(column, path)
        if column.dtype == pl.String and column.name not in (id_column, *leave_out, *categorical):
            _refuse_decimal_commas(column, path)
    return frame


def read_any_table(path: Path, text: Collection[str] = (), ids: Collection[str] = ()) -> pl.DataFrame:
    """A file that is there, with at least one row; columns in `text` stay text, even if numbers are written there.

    Those in `ids` become whole numbers only where nothing is lost: 007 is not 7, and 1.10 not 1.1.
    """
    try:
        frame = pl.read_parquet(path) if path.suffix.lower() == ".parquet" else _read_text(path, text, ids)
    except (pl.exceptions.PolarsError, csv.Error, OSError) as error:
        raise DataError(f"{path} is unreadable: {one_line(error)[:200]}; correct the file or save it again") from error
    if not frame.height:
        raise DataError(f"{path} has no rows: it needs a header line and at least one row")
    return frame


def _read_text(path: Path, text: Collection[str], ids: Collection[str]) -> pl.DataFrame:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        lines = csv.reader(file, delimiter=separator)
        header = next((values for values in lines if values), [])
        for name, times in Counter(header).items():
            if times > 1:
                raise DataError(f"{path}: {times} columns are called '{name}': give each a name of its own")
        if len(header) == 1:
            _require_separator(header[0], separator, path)
        try:
            frame = pl.read_csv(
                path,
                separator=separator,
                null_values=MISSING,
                infer_schema_length=None,
                schema_overrides={name: pl.String for name in (*text, *ids) if name in header},
            )
        except pl.exceptions.PolarsError:
            for values in lines:
                if len(values) > len(header):
                    raise DataError(
                        f"{path}, line {lines.line_num}: {len(values)} values, and the header names {len(header)} "
                        "columns: correct the line (a value with the separator in it needs quotes)"
                    ) from None
            raise
    whole = [name for name in ids if name in header and name not in text and frame[name].str.contains(_WHOLE).all()]
    frame = frame.with_columns(pl.col(whole).str.strip_suffix(".0").cast(pl.Int64))
    return frame.with_columns(pl.col(pl.Int128).cast(pl.Float64))  # more digits than anything else can count with


def _require_separator(header: str, separator: str, path: Path) -> None:
    """Refuse a header that is one name only because its columns are separated in another way."""
    others = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
    for character, name in others.items():
        if character != separator and header.count(character):
            remedy = {"\t": "call it .tsv", ",": "call it .csv"}.get(character, f"save it with {others[separator]}")
            raise DataError(
                f"{path}: the columns seem to be separated by {name}, and {path.suffix} means {others[separator]}: "
                f"{remedy}"
            )


def _refuse_decimal_commas(column: pl.Series, path: Path) -> None:
    """Refuse text that is numbers with decimal commas: each of them would become a category."""
    known = column.drop_nulls()
    commas = known.str.contains(_DECIMAL_COMMA)
    others = known.filter(~commas).cast(pl.Float64, strict=False).is_not_null()
    if commas.any() and int(commas.sum()) + int(others.sum()) > len(known) / 2:
        first = known.filter(commas)[0]
        raise DataError(
            f"{path}: column '{column.name}' has numbers with a comma, like '{first}' in row "
            f"{int((column == first).arg_true()[0]) + 1}: write {first.strip().replace(',', '.')} with a point and "
            "without thousands separators, or name the column in data.categorical (if these are codes) or "
            "data.leave_out"
        )


def _require_moderate(column: pl.Series, path: Path) -> None:
    """Refuse what single precision cannot hold; infinity is refused later, where the column is used."""
    large = (column.abs() > LARGEST) & column.is_finite()
    if large.any():
        row = int(large.arg_true()[0])
        raise DataError(
            f"{path}: column '{column.name}' has {column[row]:.3g} in row {row + 1}, too large to train on "
            f"(at most {LARGEST:.2g}): correct it, give the column in larger units, or leave it out (data.leave_out)"
        )


def read_one_file(settings: DataSettings, base: Path) -> Raw:
    """All columns from data.path; its id column is optional and not a feature."""
    assert settings.path is not None
    path = base / settings.path
    train = _labelled(read_table(path, settings.id, settings.leave_out, settings.categorical), settings, path)
    others: dict[str, Samples] = {}
    for kind, name in (("test", settings.test_path), ("validation", settings.validation)):
        if isinstance(name, str):
            other = base / name
            frame = read_table(other, settings.id, settings.leave_out, settings.categorical)
            others[kind] = _labelled(frame, settings, other)
            same_columns(train, others[kind], path, other)
            no_common_id(train.ids, others[kind].ids, path, other, kind)
    assert isinstance(train.x, pl.DataFrame)
    notes = mixed_columns(train.x, path)
    return Raw(
        path.name, "table", train, others.get("test"), tuple(train.x.columns), source=str(path), notes=notes,
        validation=others.get("validation"),
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


def mixed_columns(frame: pl.DataFrame, path: Path) -> tuple[str, ...]:
    """Notes on columns of text in which most values are numbers: a slip in one cell makes categories of them all."""
    notes = []
    for column in frame:
        if column.dtype == pl.String:
            known = column.drop_nulls()
            other = known.filter(known.cast(pl.Float64, strict=False).is_null())
            if 0 < len(other) < len(known) / 2:
                notes.append(
                    f"{path}: column '{column.name}' is text because of {len(other)} values like '{other[0]}' among "
                    "numbers: each of its values becomes a category"
                )
    return tuple(notes)


def unique_ids(frame: pl.DataFrame, column: str, path: Path | str) -> Array:
    """The ids of a file (n,): whole numbers or text, each once."""
    if column not in frame.columns:
        raise DataError(str(unknown("id column", column, frame.columns, str(path))))
    return once_each(plain_array(frame[column], f"{path}: id '{column}'"), path, f"column '{column}'")


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
