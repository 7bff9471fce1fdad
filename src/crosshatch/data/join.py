"""One file per silo, joined on an id column, as parties that hold different columns of the same people have them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.data_settings import DataSettings, SiloSettings
from crosshatch.data.dataset import Array, Indices, Raw, Samples
from crosshatch.data.make_dataset import plain_array
from crosshatch.data.notes import CHOSEN, GRAVE, Note
from crosshatch.data.reading.one_file import (
    OwnTable,
    Wanted,
    label_array,
    no_common_id,
    read_own_table,
    same_columns,
    unique_ids,
)
from crosshatch.data.reading.tables import ReadingRules
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.errors import ConfigError, DataError, PartitionError
from crosshatch.partition.features import unknown

_FEW_IDS = 200_000
_WAYS = {
    "without leading zeros (name the id column in data.csv.numbers)": (r"^0+(\d)", "${1}"),
    "without '.0' behind": (r"\.0+$", ""),
    "without spaces, hyphens and commas": (r"[\s\-_/.,]+", ""),
}


def read_file_per_silo(
    settings: DataSettings,
    silos: Sequence[SiloSettings],
    base: Path,
    *,
    label_silo: str | None,
    keep_alone: bool = False,
) -> Raw:
    """One file per silo, joined on ids: the ids that all have, in ascending order. A column's group is its silo.

    The labels are in exactly one of the files, or in a file of ids and labels at data.path. Columns of the same name
    in two files are told apart as `silo.column`. With `keep_alone` the other labelled rows of the silo with the labels
    are kept apart.
    """
    if without := [silo.name for silo in silos if silo.path is None]:
        raise PartitionError(f"silo '{without[0]}' has no path but others have one: give every silo a file, or none")
    raw, readings = _join(settings, silos, base, "path", settings.path, label_silo, keep_alone=keep_alone)
    train, place = raw.train, Path(str(silos[0].path))
    validation_labels = settings.validation if isinstance(settings.validation, str) else None
    for kind, label_path in (("test", settings.test_path), ("validation", validation_labels)):
        key = f"{kind}_path"
        paths = {silo.name: getattr(silo, key) for silo in silos}
        having = [name for name, path in paths.items() if path is not None]
        if having and len(having) < len(silos):
            absent = next(name for name, path in paths.items() if path is None)
            raise PartitionError(f"silo '{absent}' has no {key} but '{having[0]}' has: give every silo one, or none")
        if label_path is not None and not having:
            given = "data.test_path" if kind == "test" else f"data.validation = '{label_path}'"
            raise ConfigError(f"{given} is given and no silo has a {key}: give every silo one, or leave it out")
        if not having:
            continue
        other, _ = _join(settings, silos, base, key, label_path, label_silo, known=readings)
        other_place = Path(str(paths[silos[0].name]))
        same_columns(train, other.train, place, other_place)
        no_common_id(train.ids, other.train.ids, place, other_place, kind)
        found: dict[str, Any] = {kind: other.train}
        raw = replace(raw, **found, notes=raw.notes + other.notes, files=raw.files + other.files)
    return raw


Readings = Mapping[str, ColumnReading]


def _join(
    settings: DataSettings, silos: Sequence[SiloSettings], base: Path, key: str, label_path: str | None,
    label_silo: str | None, *, keep_alone: bool = False, known: Mapping[str, Readings] | None = None,
) -> tuple[Raw, Mapping[str, Readings]]:  # fmt: skip
    """The files that silos name by this key (and the label file) with their common ids in one order, as training rows.

    Beside them how the columns of each file were read; `known` is that of the training files.
    """
    sources = {silo.name: (silo, base / str(getattr(silo, key))) for silo in silos}
    if label_path is not None:
        sources[""] = SiloSettings(""), base / label_path  # no silo has an empty name
    files = [silo.name for silo in silos]
    paths = {name: path for name, (_, path) in sources.items()}
    frames: dict[str, pl.DataFrame] = {}
    ids: dict[str, Array] = {}
    tables: dict[str, OwnTable] = {}
    for name, (wished, path) in sources.items():
        # `silo.column` where names repeat
        own, codes = (
            frozenset(one.removeprefix(f"{name}.") for one in names)
            for names in (settings.leave_out, settings.categorical)
        )
        csv, column = wished.csv.over(settings.csv), wished.id or settings.id
        tables[name] = table = read_own_table(
            path,
            Wanted(
                ReadingRules(
                    csv, frozenset(() if column is None else (column,)), codes=codes, unused=own,
                    readings=(known or {}).get(name, {}),
                ),
                settings.labels, frozenset(wished.columns), name,
                "training" if known is None else key.removesuffix("_path"),
            ),
        )  # fmt: skip
        for odd in set(csv.numbers) - set(settings.csv.numbers) - set(table.frame.columns):
            raise unknown("column", odd, table.frame.columns, f"csv.numbers of silo '{name}'")
        if column is None:
            raise DataError(
                f"{path}: no id column is named, and silos with files of their own are joined on it: set data.id"
            )
        ids[name] = unique_ids(table.frame, column, path)
        frames[name] = table.frame.drop(column)
    notes = tuple(note for table in tables.values() for note in table.notes)
    holders_of_labels = {label: _label_holder(frames, label, paths, label_silo) for label in settings.labels or (None,)}
    if len(set(holders_of_labels.values())) > 1:
        (first, one), (second, other) = list(holders_of_labels.items())[:2]
        raise DataError(
            f"label '{first}' is in {paths[one]} and label '{second}' in {paths[other]}: keep all labels in one file"
        )
    holder = next(iter(holders_of_labels.values()))
    labels = label_array(frames[holder], settings.labels, paths[holder])
    frames[holder] = frames[holder].drop(settings.labels)
    weights: Array | None = None
    if settings.sample_weights is not None:
        weights = _weights(frames[holder], settings.sample_weights, paths[holder])
        frames[holder] = frames[holder].drop(settings.sample_weights)

    if len({one.dtype.kind for one in ids.values()}) > 1:
        ids = {silo: one.astype(str) for silo, one in ids.items()}  # 17 in one file, "17" in another
    common: Array = reduce(np.intersect1d, ids.values())
    most = min(len(one) for one in ids.values())
    few = 2 * len(common) < most or most <= _FEW_IDS  # comparing spellings of a million ids takes long
    alike, way = found_if_alike(ids) if len(common) < most and few else (0, "")
    hint = f"; written alike, {way}, {alike} of {most} would be" if alike > len(common) else ""
    if not len(common):
        raise DataError(
            f"{', '.join(str(path) for path in paths.values())}: the ids do not overlap, no id is in all files "
            f"(for example {', '.join(str(one[0]) for one in ids.values())}){hint}: check the id columns"
        )
    if hint:
        notes += (Note("ids", GRAVE, "", f"{len(common)} of {most} ids are in all files{hint}: check the ids"),)
    rows = {silo: _places(one, common) for silo, one in ids.items()}
    times = Counter(name for silo in files for name in frames[silo].columns)
    parts, holders = [], []
    for silo in files:
        frames[silo] = frames[silo].rename({name: f"{silo}.{name}" for name in frames[silo].columns if times[name] > 1})
        if not frames[silo].width:
            continue  # ids and labels alone
        parts.append(frames[silo][rows[silo]])
        holders += [silo] * parts[-1].width
    alone, alone_at = None, label_silo or holder or files[0]
    if keep_alone:
        others = np.setdiff1d(np.intersect1d(ids[alone_at], ids[holder]), common)
        alone = Samples(frames[alone_at][_places(ids[alone_at], others)], labels[_places(ids[holder], others)], others)
    notes += tuple(
        Note(
            "dropped", GRAVE if 2 * kept < len(one) else CHOSEN, "",
            f"{len(one) - kept} of {len(one)} rows of {paths[silo].name} dropped: their ids are not in all files",
        )
        for silo, one in ids.items()
        for kept in (len(common) + (len(alone) if alone is not None and silo in (alone_at, holder) else 0),)
        if len(one) > kept
    )  # fmt: skip
    extra = {} if weights is None else {str(settings.sample_weights): weights[rows[holder]]}
    x = pl.concat(parts, how="horizontal")
    samples, columns = Samples(x, labels[rows[holder]], common, extra), tuple(x.columns)
    readings = {
        name: reading
        for silo, name in zip(holders, columns, strict=True)
        if (reading := tables[silo].readings.get(name.removeprefix(f"{silo}."))) is not None
    }
    raw = Raw(
        " + ".join(paths[silo].name for silo in files), "table", samples, None, columns, tuple(holders), notes,
        alone=alone, alone_at=alone_at if keep_alone else "", readings=readings,
        files=tuple(replace(tables[silo].seen, lost=len(one) - len(common)) for silo, one in ids.items()),
        left_out=tuple(
            f"{silo}.{name}" if times[name] > 1 else name
            for silo in files
            for name in tables[silo].left_out
            if name not in settings.labels and name != settings.sample_weights
        ),
    )  # fmt: skip
    return raw, {name: table.readings for name, table in tables.items()}


def found_if_alike(ids: Mapping[str, Array]) -> tuple[int, str]:
    """The most ids that all have if they are written alike, and how that would be."""
    texts = {name: pl.Series([str(one) for one in values.tolist()]) for name, values in ids.items()}
    small = {name: text.str.to_lowercase() for name, text in texts.items()}
    tried = {"": texts, **{way: _written_alike(texts, way) for way in _WAYS}, "in small letters": small}
    tried["without zeros, spaces and capitals"] = reduce(_written_alike, _WAYS, small)
    counts = {way: len(set.intersection(*(set(text.to_list()) for text in one.values()))) for way, one in tried.items()}
    best = max(counts, key=lambda way: counts[way])
    return counts[best], best


def _written_alike(texts: Mapping[str, pl.Series], way: str) -> dict[str, pl.Series]:
    return {name: text.str.replace_all(*_WAYS[way]) for name, text in texts.items()}


def _places(ids: Array, wanted: Array) -> Indices:
    """Where the wanted ids stand, all of which are there."""
    return np.argsort(ids, kind="stable")[np.searchsorted(np.sort(ids), wanted)]


def _weights(frame: pl.DataFrame, column: str, path: Path) -> Array:
    if column not in frame.columns:
        raise DataError(
            f"{path} has no column '{column}' (data.sample_weights): who holds the labels holds the weights, put "
            "it into this file"
        )
    return plain_array(frame[column], f"{path}: weights '{column}'")


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
