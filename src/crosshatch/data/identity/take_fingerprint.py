"""Reading a data set for its identity: the rows that are used, their columns, and all labels of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Array, Dataset, Indices, Samples, parts_of
from crosshatch.data.divide_features import divide_features, silo_settings
from crosshatch.data.identity.fingerprint import ColumnPrint, Fingerprint, NamedFingerprint
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.row_ids import Column, Digester, RowIds, kind_of
from crosshatch.data.make_dataset import column_values

PIXELS = "pixels"  # of all silos: an image is one column
SHORT = 16  # hexadecimal digits of a digest of one column: a table may have thousands


@dataclass(frozen=True)
class UsedRows:
    """The rows that a run uses: training, validation and test rows, and those one silo has alone, in this order."""

    each: list[Array]  # ids, or row numbers, of each part
    membership: npt.NDArray[np.uint8]
    counts: dict[str, int]
    ids: RowIds
    test_part: int

    @staticmethod
    def of(dataset: Dataset) -> UsedRows:
        names, parts = ("train", "validation", "test", "alone"), parts_of(dataset)
        each = [part.ids for part in parts.values() if part.ids is not None]
        if len(each) < len(parts):
            sizes = np.cumsum([0, *(len(part) for part in parts.values())])
            each = [
                np.arange(start, start + len(part)) if part.numbers is None else part.numbers
                for part, start in zip(parts.values(), sizes, strict=False)
            ]
        codes = [np.full(len(part), names.index(name), np.uint8) for name, part in parts.items()]
        return UsedRows(
            each,
            np.concatenate(codes),
            {name: len(parts[name]) if name in parts else 0 for name in names},
            RowIds.of(each),
            list(parts).index("test"),
        )

    def of_part(self, part: int) -> Indices:
        """The rows of one part by ascending id, counted from the first of them."""
        positions = self.ids.ascending - sum(len(before) for before in self.each[:part])
        return positions[(positions >= 0) & (positions < len(self.each[part]))]

    def first(self, values: Sequence[Column]) -> Indices:
        """The order of the rows of the first so many parts."""
        count = sum(len(part) for part in values)
        order = self.ids.ascending
        return order if count == len(order) else order[order < count]


def held_columns(dataset: Dataset, held: Sequence[str]) -> list[tuple[str, list[Column]]]:
    """The columns that silos hold, by name, with their values in training, validation and test rows, and alone."""
    parts = [part for part in (dataset.train, dataset.validation, dataset.test) if part is not None]
    if dataset.kind == "image":
        return [(PIXELS, [part.x for part in parts if isinstance(part.x, np.ndarray)])]
    static = [part.extra.get("static") for part in parts]
    places = {name: at for at, name in enumerate(dataset.columns)}
    found: list[tuple[str, list[Column]]] = []
    for name in dict.fromkeys(held):
        if name not in places:
            found.append((name, [table[name] for table in static if isinstance(table, pl.DataFrame)]))
            continue
        at = places[name]
        values = [part.x[name] if isinstance(part.x, pl.DataFrame) else part.x[..., at] for part in parts]
        alone = None if dataset.alone is None else dataset.alone.x
        if isinstance(alone, pl.DataFrame) and name in alone.columns:
            values.append(alone[name])
        found.append((name, values))
    return found


def columns_beside(dataset: Dataset, federation: FederationSettings) -> list[str]:
    """Columns that count without being in a block: weights, and those whose values are clients or groups."""
    silos = federation.silos if isinstance(federation.silos, tuple) else ()
    splits = [federation.samples, federation.group_samples, *(silo.samples for silo in silos)]
    columns = [split.column for split in splits if split is not None and split.kind == "column"]
    return [name for name in dict.fromkeys((dataset.sample_weights, *columns)) if name is not None]


def all_rows(dataset: Dataset) -> tuple[RowIds | None, Array]:
    """Ids, if there are any, and labels of all rows as their source delivered them."""
    if dataset.delivered is not None:
        ids, labels = dataset.delivered
        return (None if ids is None else RowIds.of(ids)), labels
    known = parts_of(dataset).values()
    ids = tuple(part.ids for part in known if part.ids is not None)
    labels = as_written(dataset, np.concatenate([part.y for part in known]))
    return (RowIds.of(ids) if len(ids) == len(known) else None), labels


def as_written(dataset: Dataset, y: Array) -> Array:
    """Labels under the names of their classes, where they have names."""
    if dataset.target not in ("binary", "multiclass") or not dataset.class_names:
        return y
    return np.asarray(dataset.class_names)[y]


def take_fingerprint(dataset: Dataset, federation: FederationSettings, key: OwnerKey) -> Fingerprint:
    return take_named(dataset, federation, key).fingerprint


def take_named(dataset: Dataset, federation: FederationSettings, key: OwnerKey) -> NamedFingerprint:
    """The same with the names beside it, to say in words what differs."""
    digest = Digester(key.secret)
    silos = silo_settings(federation)
    parts, _ = divide_features(dataset, silos, federation)
    used = UsedRows.of(dataset)
    columns: dict[str, ColumnPrint] = {}
    names: dict[str, str] = {}

    def add(name: str, kind: str, values: Sequence[Column], order: Indices, tested: str) -> None:
        short = digest.of("name", kind, name)[:SHORT]
        names[short] = name
        columns[short] = ColumnPrint(
            digest.of("type", name, kind_of(values))[:SHORT],
            digest.of_column(f"{kind} {name}", values, order)[:SHORT],
            tested[:SHORT],
        )

    test_order = used.of_part(used.test_part)
    for name, values in held_columns(dataset, [column for part in parts for column in part.columns]):
        tested = digest.of_column(f"test values of {name}", [values[used.test_part]], test_order)
        add(name, "values of", values, used.first(values), tested)
    for name in columns_beside(dataset, federation):
        add(name, "beside", [column_values(dataset.train, name, "data")], used.of_part(0), "")
    all_ids, labels = all_rows(dataset)
    order = np.arange(len(labels)) if all_ids is None else all_ids.ascending
    who = "" if all_ids is None else digest.of("ids", *all_ids.bytes(order))
    rows = [who] if all_ids is not None else [one.values for one in columns.values()]
    all_labels = digest.of_column("all labels", [labels], order)
    used_order = used.ids.ascending
    fingerprint = Fingerprint(
        key=key.name,
        ids=all_ids is not None,
        counts={"all": len(labels), **used.counts},
        rows=digest.of("rows", str(len(labels)), *rows),
        labels=digest.of("labels", who, all_labels),
        split=digest.of("split", *used.ids.bytes(used_order), used.membership[used_order].tobytes()),
        order=digest.of("order", *used.ids.bytes(np.arange(len(used_order)))),
        validation="" if dataset.validation is None else _with_labels(dataset, dataset.validation, 1, used, digest),
        test=_with_labels(dataset, dataset.test, used.test_part, used, digest),
        columns=columns,
        silos=tuple(digest.of("silo", silo.name, *part.columns) for silo, part in zip(silos, parts, strict=True)),
    )
    return NamedFingerprint(fingerprint, names, tuple(silo.name for silo in silos))


def _with_labels(dataset: Dataset, samples: Samples, part: int, used: UsedRows, digest: Digester) -> str:
    order = used.of_part(part)
    labels = digest.of_column("labels of some", [as_written(dataset, samples.y)], order)
    return digest.of("who and labels", *RowIds.of([used.each[part]]).bytes(order), labels)
