"""One file per silo, joined on an id column, as parties that hold different columns of the same people have them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.data.data_settings import CsvSettings, DataSettings, SiloSettings
from crosshatch.data.dataset import Array, Indices, Raw, Samples
from crosshatch.data.looking.id_hints import FEW_IDS, found_if_alike
from crosshatch.data.looking.seen import FileSeen
from crosshatch.data.make_dataset import plain_array
from crosshatch.data.notes import CHOSEN, GRAVE, Note
from crosshatch.data.reading.one_file import (
    Wanted,
    label_array,
    no_common_id,
    read_own_table,
    same_columns,
    unique_ids,
)
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.errors import ConfigError, DataError, PartitionError
from crosshatch.partition.features import unknown


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
    train = _join(
        {silo.name: _Source(base / str(silo.path), *_understanding(silo, settings)) for silo in silos},
        settings,
        base,
        settings.path,
        label_silo,
        keep_alone=keep_alone,
    )
    notes, files = train.notes, train.files
    others: dict[str, _Joined] = {}
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
        others[kind] = other = _join(
            {silo.name: _Source(base / str(paths[silo.name]), *_understanding(silo, settings)) for silo in silos},
            settings,
            base,
            label_path,
            label_silo,
            known=train.readings,
            purpose=kind,
        )
        place, other_place = Path(str(silos[0].path)), Path(str(paths[silos[0].name]))
        same_columns(train.samples, other.samples, place, other_place)
        no_common_id(train.samples.ids, other.samples.ids, place, other_place, kind)
        notes += other.notes
        files += other.files
    assert isinstance(train.samples.x, pl.DataFrame)
    name = " + ".join(Path(str(silo.path)).name for silo in silos)
    return Raw(
        name,
        "table",
        train.samples,
        others["test"].samples if "test" in others else None,
        tuple(train.samples.x.columns),
        groups=train.holders,
        notes=notes,
        validation=others["validation"].samples if "validation" in others else None,
        alone=train.alone,
        alone_at=train.alone_at,
        readings=train.named_readings,
        files=files,
        left_out=train.left_out,
    )


@dataclass(frozen=True)
class _Source:
    path: Path
    id: str | None
    csv: CsvSettings
    forced: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Joined:
    samples: Samples
    holders: tuple[str, ...]  # the silo of each column
    notes: tuple[Note, ...]
    readings: Mapping[str, Mapping[str, ColumnReading]]  # by silo
    files: tuple[FileSeen, ...]
    left_out: tuple[str, ...]
    alone: Samples | None = None
    alone_at: str = ""

    @property
    def named_readings(self) -> dict[str, ColumnReading]:
        """By the names that columns have after the join."""
        assert isinstance(self.samples.x, pl.DataFrame)
        return {
            name: reading
            for silo, name in zip(self.holders, self.samples.x.columns, strict=True)
            if (reading := self.readings[silo].get(name.removeprefix(f"{silo}."))) is not None
        }


def _understanding(silo: SiloSettings, settings: DataSettings) -> tuple[str | None, CsvSettings, frozenset[str]]:
    return silo.id or settings.id, silo.csv.over(settings.csv), frozenset(silo.columns)


def _join(
    files: Mapping[str, _Source],
    settings: DataSettings,
    base: Path,
    label_path: str | None,
    label_silo: str | None,
    *,
    keep_alone: bool = False,
    known: Mapping[str, Mapping[str, ColumnReading]] | None = None,
    purpose: str = "training",
) -> _Joined:
    """Read the files of all silos (and the label file) and put their common ids into one order.

    `known` is how the columns of the training files were read.
    """
    sources = dict(files)
    if label_path is not None:
        sources[""] = _Source(base / label_path, settings.id, settings.csv)  # no silo has an empty name
    frames: dict[str, pl.DataFrame] = {}
    ids: dict[str, Array] = {}
    notes: tuple[Note, ...] = ()
    readings: dict[str, Mapping[str, ColumnReading]] = {}
    seen: dict[str, FileSeen] = {}
    left_out: dict[str, tuple[str, ...]] = {}
    for silo, source in sources.items():
        path, column = source.path, source.id
        # `silo.column` where names repeat
        own, codes = (
            [name.removeprefix(f"{silo}.") for name in names] for names in (settings.leave_out, settings.categorical)
        )
        table = read_own_table(
            path,
            Wanted(
                source.csv, column, settings.labels, frozenset(own), frozenset(codes), source.forced, silo, purpose,
                None if known is None else known.get(silo, {}),
            ),
        )  # fmt: skip
        for name in set(source.csv.numbers) - set(settings.csv.numbers) - set(table.frame.columns):
            raise unknown("column", name, table.frame.columns, f"csv.numbers of silo '{silo}'")
        frame, readings[silo], notes = table.frame, table.readings, notes + table.notes
        seen[silo], left_out[silo] = table.seen, table.left_out
        if column is None:
            raise DataError(
                f"{path}: no id column is named, and silos with files of their own are joined on it: set data.id"
            )
        ids[silo] = unique_ids(frame, column, path)
        frames[silo] = frame.drop(column)
    paths = {silo: source.path for silo, source in sources.items()}
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
    few = 2 * len(common) < most or most <= FEW_IDS  # comparing spellings of a million ids takes long
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
    alone, alone_at = None, label_silo or holder or next(iter(files))
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
    samples = Samples(pl.concat(parts, how="horizontal"), labels[rows[holder]], common, extra)
    shown = tuple(replace(seen[silo], lost=len(one) - len(common)) for silo, one in ids.items())
    out = tuple(
        f"{silo}.{name}" if times[name] > 1 else name
        for silo in files
        for name in left_out[silo]
        if name not in settings.labels and name != settings.sample_weights
    )
    return _Joined(samples, tuple(holders), notes, readings, shown, out, alone, alone_at if keep_alone else "")


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
