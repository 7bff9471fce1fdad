"""The one function that reads a data set for its identity."""

from __future__ import annotations

import numpy as np

from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Dataset, Samples
from crosshatch.data.divide_features import divide_features, silo_settings
from crosshatch.data.identity.fingerprint import ColumnPrint, Fingerprint, NamedFingerprint
from crosshatch.data.identity.keyed_digest import Digester, ascending, id_bytes, kind_of, same_ids
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.used_rows import UsedRows, all_rows, as_written, columns_beside, held_columns
from crosshatch.data.make_dataset import column_values


def take_fingerprint(dataset: Dataset, federation: FederationSettings, key: OwnerKey) -> Fingerprint:
    """The fingerprint of a data set and of its division among silos."""
    return take_named(dataset, federation, key).fingerprint


def take_named(dataset: Dataset, federation: FederationSettings, key: OwnerKey) -> NamedFingerprint:
    """The same with the names beside it, to say in words what differs."""
    digest = Digester(key.secret)
    silos = silo_settings(federation)
    parts, _ = divide_features(dataset, silos, federation)
    used = UsedRows.of(dataset)
    columns: dict[str, ColumnPrint] = {}
    names: dict[str, str] = {}
    for name, values in held_columns(dataset, [column for part in parts for column in part.columns]):
        names[digest.of("name", name)] = name
        columns[digest.of("name", name)] = ColumnPrint(
            digest.of("type", name, kind_of(values)),
            digest.of_column(f"values of {name}", values, used.first(values)),
            digest.of_column(f"test values of {name}", [values[used.test_part]], used.of_part(used.test_part)),
        )
    for name in columns_beside(dataset, federation):
        values = [column_values(dataset.train, name, "data")]
        names[digest.of("name", f"beside {name}")] = name
        columns[digest.of("name", f"beside {name}")] = ColumnPrint(
            digest.of("type", name, kind_of(values)), digest.of_column(f"beside {name}", values, used.of_part(0)), ""
        )
    all_ids, labels = all_rows(dataset)
    order = np.arange(len(labels)) if all_ids is None else ascending(all_ids)
    rows = digest.of(
        "rows",
        str(len(labels)),
        *(id_bytes(all_ids, order) if all_ids is not None else [one.values for one in columns.values()]),
    )
    fingerprint = Fingerprint(
        key=key.name,
        ids=all_ids is not None,
        counts={"all": len(labels), **used.counts},
        rows=rows,
        labels=digest.of(
            "labels",
            *([] if all_ids is None else id_bytes(all_ids, order)),
            digest.of_column("all labels", [labels], order),
        ),
        split=digest.of("split", *id_bytes(used.ids, used.order), used.membership[used.order].tobytes()),
        order=digest.of("order", *id_bytes(used.ids, np.arange(len(used.ids)))),
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
    return digest.of("who and labels", *id_bytes(same_ids([used.each[part]]), order), labels)
