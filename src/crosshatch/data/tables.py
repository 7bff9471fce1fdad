"""People's own tables, CSV or Parquet: reading a file, its ids and its labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.assemble import Raw, plain_array
from crosshatch.data.samples import Array, Samples
from crosshatch.data.settings import DataSettings
from crosshatch.data.sources import require_table
from crosshatch.errors import DataError
from crosshatch.partition.features import unknown

# What people write for a value they do not have; polars reads NaN by itself.
MISSING = ["", "NA", "N/A", "null", "NULL", "?"]


def read_table(path: Path) -> pl.DataFrame:
    """A .csv, .tsv or .parquet file with at least one row."""
    require_table(path)
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            frame = pl.read_parquet(path)
        else:
            separator = "\t" if suffix == ".tsv" else ","
            frame = pl.read_csv(path, separator=separator, null_values=MISSING, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path} is unreadable: {reason}; correct the file or save it again") from error
    if not frame.height:
        raise DataError(f"{path} has no rows: it needs a header line and at least one row")
    return frame


def read_one_file(settings: DataSettings, base: Path) -> Raw:
    """All columns from data.path; its id column is optional and not a feature."""
    assert settings.path is not None
    path = base / settings.path
    train = _labelled(read_table(path), settings, path)
    test = None
    if settings.test_path is not None:
        test_path = base / settings.test_path
        test = _labelled(read_table(test_path), settings, test_path)
        same_columns(train, test, path, test_path)
        no_common_id(train.ids, test.ids, path, test_path)
    assert isinstance(train.x, pl.DataFrame)
    return Raw(path.name, "table", train, test, tuple(train.x.columns), source=str(path))


def _labelled(frame: pl.DataFrame, settings: DataSettings, path: Path) -> Samples:
    if settings.label is None:
        raise DataError(f"{path}: no label column is named: set data.label to one of its columns")
    if settings.label not in frame.columns:
        raise DataError(str(unknown("label column", settings.label, frame.columns, str(path))))
    if settings.label == settings.id:
        raise DataError(f"{path}: column '{settings.id}' is both data.id and data.label: name two columns")
    y = plain_array(frame[settings.label], f"{path}: label '{settings.label}'")
    ids = None if settings.id is None else unique_ids(frame, settings.id, path)
    return Samples(frame.drop([settings.label] + ([] if settings.id is None else [settings.id])), y, ids)


def unique_ids(frame: pl.DataFrame, column: str, path: Path) -> Array:
    """The ids of a file (n,): whole numbers or text, each once."""
    if column not in frame.columns:
        raise DataError(str(unknown("id column", column, frame.columns, str(path))))
    ids = plain_array(frame[column], f"{path}: id '{column}'")
    whole = ids.dtype.kind == "f" and bool((ids == np.rint(ids)).all())
    if whole or ids.dtype.kind in "iu":
        ids = ids.astype(np.int64)
    values, counts = np.unique(ids, return_counts=True)
    if len(values) < len(ids):
        twice = values[counts > 1]
        raise DataError(
            f"{path}: id '{twice[0]}' in column '{column}' occurs {counts[counts > 1][0]} times ({len(twice)} such "
            "ids): keep one row an id"
        )
    return ids


def same_columns(train: Samples, test: Samples, path: Path, test_path: Path) -> None:
    """Refuse a test file that lacks a column."""
    assert isinstance(train.x, pl.DataFrame)
    assert isinstance(test.x, pl.DataFrame)
    if absent := [name for name in train.x.columns if name not in test.x.columns]:
        raise DataError(f"{test_path} has no column '{absent[0]}', which {path} has: give both the same columns")


def no_common_id(train: Array | None, test: Array | None, path: Path, test_path: Path) -> None:
    """Refuse a row that is trained on and tested on."""
    if train is None or test is None:
        return
    both = np.intersect1d(train.astype(str), test.astype(str))
    if len(both):
        raise DataError(f"id '{both[0]}' is in {path} and in {test_path}: a test row must not be trained on")
