"""People's own tables, CSV or Parquet: one file for all silos, or one file per silo joined on an id column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.assemble import Raw, plain_array
from crosshatch.data.samples import Array, Samples
from crosshatch.data.settings import DataSettings, SiloSettings
from crosshatch.errors import DataError, PartitionError
from crosshatch.partition.features import unknown

# What people write for a value they do not have; polars reads NaN by itself.
MISSING = ["", "NA", "N/A", "null", "NULL", "?"]


def read_table(path: Path) -> pl.DataFrame:
    """A .csv, .tsv or .parquet file with at least one row."""
    if path.suffix not in (".csv", ".tsv", ".parquet"):
        raise DataError(f"{path}: unsupported kind of file '{path.suffix}': use .csv, .tsv or .parquet")
    if not path.is_file():
        raise DataError(f"no file {path}: check the path (it is relative to the config file)")
    try:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
        else:
            separator = "\t" if path.suffix == ".tsv" else ","
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
        _same_columns(train, test, path, test_path)
        _no_common_id(train.ids, test.ids, path, test_path)
    assert isinstance(train.x, pl.DataFrame)
    return Raw(path.name, "table", train, test, tuple(train.x.columns), source=str(path))


def read_file_per_silo(
    settings: DataSettings, silos: Sequence[SiloSettings], base: Path, *, label_silo: str | None
) -> Raw:
    """One file per silo, joined on ids: the ids that all have, in ascending order. A column's group is its silo.

    The labels are in exactly one of the files, or in a file of ids and labels at data.path. Columns of the same name
    in two files are told apart as `silo.column`.
    """
    if without := [silo.name for silo in silos if silo.path is None]:
        raise PartitionError(f"silo '{without[0]}' has no path but others have one: give every silo a file, or none")
    tested = [silo for silo in silos if silo.test_path is not None]
    if tested and len(tested) < len(silos):
        absent = next(silo.name for silo in silos if silo.test_path is None)
        raise PartitionError(
            f"silo '{absent}' has no test_path but '{tested[0].name}' has: give every silo one, or none"
        )
    train = _join(
        {silo.name: (base / str(silo.path), silo.id or settings.id) for silo in silos},
        settings,
        base,
        settings.path,
        label_silo,
    )
    test = None
    notes = train.notes
    if tested:
        test = _join(
            {silo.name: (base / str(silo.test_path), silo.id or settings.id) for silo in silos},
            settings,
            base,
            settings.test_path,
            label_silo,
        )
        place, test_place = Path(str(silos[0].path)), Path(str(silos[0].test_path))
        _same_columns(train.samples, test.samples, place, test_place)
        _no_common_id(train.samples.ids, test.samples.ids, place, test_place)
        notes += test.notes
    assert isinstance(train.samples.x, pl.DataFrame)
    name = " + ".join(Path(str(silo.path)).name for silo in silos)
    return Raw(
        name,
        "table",
        train.samples,
        None if test is None else test.samples,
        tuple(train.samples.x.columns),
        groups=train.holders,
        source=name,
        notes=notes,
    )


@dataclass(frozen=True)
class _Joined:
    samples: Samples
    holders: tuple[str, ...]  # the silo of each column
    notes: tuple[str, ...]


def _join(
    files: Mapping[str, tuple[Path, str | None]],
    settings: DataSettings,
    base: Path,
    label_path: str | None,
    label_silo: str | None,
) -> _Joined:
    """Read the files of all silos (and the label file) and put their common ids into one order."""
    sources = dict(files)
    if label_path is not None:
        sources[""] = (base / label_path, settings.id)  # no silo has an empty name
    frames: dict[str, pl.DataFrame] = {}
    ids: dict[str, Array] = {}
    for silo, (path, column) in sources.items():
        frame = read_table(path)
        if column is None:
            raise DataError(
                f"{path}: no id column is named, and silos with files of their own are joined on it: set data.id"
            )
        ids[silo] = _ids(frame, column, path)
        frames[silo] = frame.drop(column)
    paths = {silo: path for silo, (path, _) in sources.items()}
    holder = _label_holder(frames, settings.label, paths, label_silo)
    assert settings.label is not None
    labels = plain_array(frames[holder][settings.label], f"{paths[holder]}: label '{settings.label}'")
    frames[holder] = frames[holder].drop(settings.label)

    if len({one.dtype.kind for one in ids.values()}) > 1:
        ids = {silo: one.astype(str) for silo, one in ids.items()}  # 17 in one file, "17" in another
    common: Array = reduce(np.intersect1d, ids.values())
    if not len(common):
        raise DataError(
            f"{', '.join(str(path) for path in paths.values())}: the ids do not overlap, no id is in all files "
            f"(for example {', '.join(str(one[0]) for one in ids.values())}): check the id columns"
        )
    rows = {silo: np.argsort(one, kind="stable")[np.searchsorted(np.sort(one), common)] for silo, one in ids.items()}
    times = Counter(name for silo in files for name in frames[silo].columns)
    parts, holders = [], []
    for silo in files:
        part = frames[silo][rows[silo]]
        parts.append(part.rename({name: f"{silo}.{name}" for name in part.columns if times[name] > 1}))
        holders += [silo] * part.width
    notes = tuple(
        f"{len(one) - len(common)} of {len(one)} rows of {paths[silo].name} dropped: their ids are not in all files"
        for silo, one in ids.items()
        if len(one) > len(common)
    )
    samples = Samples(pl.concat(parts, how="horizontal"), labels[rows[holder]], common)
    return _Joined(samples, tuple(holders), notes)


def _label_holder(
    frames: Mapping[str, pl.DataFrame], label: str | None, paths: Mapping[str, Path], label_silo: str | None
) -> str:
    if label is None:
        raise DataError(f"{', '.join(str(path) for path in paths.values())}: no label column is named: set data.label")
    having = [silo for silo, frame in frames.items() if label in frame.columns]
    if not having:
        raise DataError(
            f"no label column '{label}' in {', '.join(str(path) for path in paths.values())}: check data.label"
        )
    if len(having) > 1:
        raise DataError(
            f"label '{label}' is in two files, {paths[having[0]]} and {paths[having[1]]}: keep it in one of them"
        )
    if label_silo is not None and having[0] not in ("", label_silo):
        raise PartitionError(
            f"federation.labels = '{label_silo}', but label '{label}' is in {paths[having[0]]} of silo '{having[0]}': "
            f"use labels = '{having[0]}'"
        )
    return having[0]


def _labelled(frame: pl.DataFrame, settings: DataSettings, path: Path) -> Samples:
    if settings.label is None:
        raise DataError(f"{path}: no label column is named: set data.label to one of its columns")
    if settings.label not in frame.columns:
        raise DataError(str(unknown("label column", settings.label, frame.columns, str(path))))
    y = plain_array(frame[settings.label], f"{path}: label '{settings.label}'")
    ids = None if settings.id is None else _ids(frame, settings.id, path)
    return Samples(frame.drop([settings.label] + ([] if settings.id is None else [settings.id])), y, ids)


def _ids(frame: pl.DataFrame, column: str, path: Path) -> Array:
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


def _same_columns(train: Samples, test: Samples, path: Path, test_path: Path) -> None:
    assert isinstance(train.x, pl.DataFrame)
    assert isinstance(test.x, pl.DataFrame)
    if absent := [name for name in train.x.columns if name not in test.x.columns]:
        raise DataError(f"{test_path} has no column '{absent[0]}', which {path} has: give both the same columns")


def _no_common_id(train: Array | None, test: Array | None, path: Path, test_path: Path) -> None:
    if train is None or test is None:
        return
    both = np.intersect1d(train.astype(str), test.astype(str))
    if len(both):
        raise DataError(f"id '{both[0]}' is in {path} and in {test_path}: a test row must not be trained on")
