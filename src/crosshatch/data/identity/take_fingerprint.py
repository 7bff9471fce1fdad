"""The one function that reads a data set for its identity."""

from collections.abc import Sequence

import numpy as np

from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Dataset, Indices, Samples
from crosshatch.data.divide_features import divide_features, silo_settings
from crosshatch.data.identity.fingerprint import ColumnPrint, Fingerprint, NamedFingerprint
from crosshatch.data.identity.keyed_digest import Column, Digester, kind_of
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.row_ids import RowIds
from crosshatch.data.identity.used_rows import UsedRows, all_rows, as_written, columns_beside, held_columns
from crosshatch.data.make_dataset import column_values

SHORT = 16  # hexadecimal digits of a digest of one column: a table may have thousands


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
    """Who the rows of a part are, and their labels."""
    order = used.of_part(part)
    labels = digest.of_column("labels of some", [as_written(dataset, samples.y)], order)
    return digest.of("who and labels", *RowIds.of([used.each[part]]).bytes(order), labels)
