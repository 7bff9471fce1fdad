"""The identity of a run's data as a value: what was it trained and tested on, without saying what is in it.

Every digest is keyed by a value that its owner has (`owner_key`). Who has no key cannot search for the labels or names
behind a digest; who has it can, so the key stays at home. Two fingerprints compare under the same key only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec
import numpy as np

from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Dataset
from crosshatch.data.divide_features import divide_features, silo_settings
from crosshatch.data.identity.keyed_digest import Digester, ascending, id_bytes, kind_of, same_ids
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.used_rows import UsedRows, all_rows, as_written, columns_beside, held_columns
from crosshatch.data.make_dataset import column_values


class ColumnPrint(msgspec.Struct, frozen=True):
    """Digests of one column: its type, its values in all rows that are used, and in the test rows alone."""

    type: str
    values: str
    test: str


class Fingerprint(msgspec.Struct, frozen=True):
    """Counts, and keyed digests that compare one by one; as JSON it has no name, id, label or value in it.

    `key` tells which key was used and nothing of it. `rows` is who the rows are, all that the source has: their ids,
    or their values where there are no ids. `labels` are those of all rows as they were written, by id or row number,
    so they are the same under another split, limit or division. `split` is which rows are trained, validated and
    tested on, and `order` how the rows stand. `test` is who the test rows are, with their labels. `columns` has those
    that are used, by the digest of their name, and `silos` the columns of each silo, in their order. `counts` are
    rows: all, train, validation, test, alone.

    >>> from crosshatch.data.build import load_dataset
    >>> from crosshatch.data.data_settings import DataSettings, FederationSettings
    >>> key = OwnerKey(bytes(32))
    >>> one, other = (
    ...     take_fingerprint(load_dataset(DataSettings(name="wine", split_seed=seed)), FederationSettings(), key)
    ...     for seed in (0, 1)
    ... )
    >>> one.labels == other.labels, one.split == other.split, one.counts["test"]
    (True, False, 36)
    """

    key: str
    ids: bool
    counts: dict[str, int]
    rows: str
    labels: str
    split: str
    order: str
    test: str
    columns: dict[str, ColumnPrint]
    silos: tuple[str, ...]

    @property
    def digest(self) -> str:
        """One digest of everything: equal for equal data in the same order, divided among silos in the same way."""
        return blake2b(msgspec.json.encode(self), digest_size=16).hexdigest()


@dataclass(frozen=True)
class NamedFingerprint:
    """A fingerprint beside the names that its owner knows: of columns, by the digest of the name, and of silos."""

    fingerprint: Fingerprint
    columns: Mapping[str, str] = field(default_factory=dict)
    silos: tuple[str, ...] = ()


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
            digest.of_column(f"test values of {name}", [values[used.test_part]], used.test_order),
        )
    for name in columns_beside(dataset, federation):
        values = [column_values(dataset.train, name, "data")]
        names[digest.of("name", f"beside {name}")] = name
        columns[digest.of("name", f"beside {name}")] = ColumnPrint(
            digest.of("type", name, kind_of(values)), digest.of_column(f"beside {name}", values, used.train_order), ""
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
        labels=digest.of_column("labels", [labels], order),
        split=digest.of("split", *id_bytes(used.ids, used.order), used.membership[used.order].tobytes()),
        order=digest.of("order", *id_bytes(used.ids, np.arange(len(used.ids)))),
        test=digest.of(
            "test",
            *id_bytes(same_ids([used.each[used.test_part]]), used.test_order),
            digest.of_column("test labels", [as_written(dataset, dataset.test.y)], used.test_order),
        ),
        columns=columns,
        silos=tuple(digest.of("silo", silo.name, *part.columns) for silo, part in zip(silos, parts, strict=True)),
    )
    return NamedFingerprint(fingerprint, names, tuple(silo.name for silo in silos))
