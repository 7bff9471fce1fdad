"""The identity of a run's data as a value: what was it trained and tested on, without saying what is in it.

Every digest is keyed by a value that its owner has (`owner_key`). Who has no key cannot search for the labels or names
behind a digest; who has it can, so the key stays at home. Two fingerprints compare under the same key only.
Reading it from the file in a run directory needs neither torch nor a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from crosshatch.errors import RunError


class ColumnPrint(msgspec.Struct, frozen=True, array_like=True):
    """Digests of 64 bits of one column: its type, its values in all rows that are used, and in the test rows alone."""

    type: str
    values: str
    test: str


class Fingerprint(msgspec.Struct, frozen=True):
    """Counts, and keyed digests that compare one by one; as JSON it has no name, id, label or value in it.

    `key` tells which key was used and nothing of it. `rows` is who the rows are, all that the source has: their ids,
    or their values where there are no ids. `labels` are those of all rows as they were written, by id or row number,
    so they are the same under another split, limit or division. `split` is which rows are trained, validated and
    tested on, and `order` how the rows stand. `validation` (empty where there are none) and `test` are who
    these rows are, with their labels. `columns` has those that are used, by the digest of their name, and `silos` the
    columns of each silo, in their order. `counts` are rows: all, train, validation, test, alone.

    >>> from crosshatch.data.build import load_dataset
    >>> from crosshatch.data.data_settings import DataSettings, FederationSettings
    >>> from crosshatch.data.identity.owner_key import OwnerKey
    >>> from crosshatch.data.identity.take_fingerprint import take_fingerprint
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
    validation: str
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


def same_test_rows(one: Fingerprint, other: Fingerprint) -> bool | None:
    """Whether two runs were tested on the same rows with the same labels and values; None where it cannot be told.

    Each may have columns that the other has not. Without ids rows are known by their place and by their values: then
    nothing can be told of runs that have no column in common.
    """
    if one.key != other.key:
        return None
    if one.test != other.test or one.ids != other.ids:
        return False
    both = [name for name, column in one.columns.items() if column.test and name in other.columns]
    if any(one.columns[name].test != other.columns[name].test for name in both):
        return False
    return True if both or one.ids else None


FINGERPRINT = "fingerprint.json"


def fingerprint_text(fingerprint: Fingerprint) -> bytes:
    return msgspec.json.encode(fingerprint) + b"\n"


def read_fingerprint(path: Path) -> Fingerprint | None:
    """That of the run in a directory; None where it was made without one, or with one in another form."""
    file = path / FINGERPRINT
    try:
        return msgspec.json.decode(file.read_bytes(), type=Fingerprint)
    except (FileNotFoundError, msgspec.ValidationError):
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(
            f"{file} cannot be read ({error}): restore it, or remove it if nothing shall be said of the run's data"
        ) from None
