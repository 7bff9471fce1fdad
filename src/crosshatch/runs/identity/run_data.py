"""A run's data, read with its fingerprint; refused where they are not those that the run was started with."""

from collections.abc import Callable
from pathlib import Path
from weakref import ref

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Dataset
from crosshatch.data.identity.differences import differences
from crosshatch.data.identity.fingerprint import Fingerprint, NamedFingerprint, read_fingerprint, same_test_rows
from crosshatch.data.identity.owner_key import OwnerKey, owner_key
from crosshatch.data.identity.take_fingerprint import take_named
from crosshatch.errors import RunError
from crosshatch.runs.config import Config

Warn = Callable[[str], None]
Load = Callable[[Config, Path | None], Dataset]
"""Reads what a config names, named sets from a data folder."""
_LAST: list[tuple[ref[Dataset], tuple[FederationSettings, bytes], NamedFingerprint]] = []  # the one taken last, if any


def load(config: Config, folder: Path | None) -> Dataset:
    return load_dataset(config.data, folder, federation=config.federation)


def read_data(
    config: Config,
    folder: Path | None,
    *,
    of: Path | None = None,
    warn: Warn = lambda _: None,
    test_rows_alone: bool = False,
    load: Load = load,
) -> tuple[Dataset, Fingerprint | None]:
    """What a config names, and its fingerprint; None where no key can be kept, of which `warn` is told.

    `of` is the directory of an earlier run of this config, whose data they must be, or with `test_rows_alone` its test
    rows: a RunError says what differs, and `warn` is told where it cannot be told.
    """
    dataset = load(config, folder)
    found, why = None, ""
    try:
        if dataset.elsewhere is not None:
            raise RunError("run.load = 'apart', and who tells data apart reads all of them")
        key = owner_key()
    except RunError as error:
        why = str(error)
    else:
        if key.note:
            warn(key.note)
        found = _taken(dataset, config.federation, key)
    if of is not None:
        _require_same_data(of, found, why, warn, test_rows_alone=test_rows_alone)
    elif found is None:
        warn(f"{why}; this run has no fingerprint of its data")
    return dataset, None if found is None else found.fingerprint


def _taken(dataset: Dataset, federation: FederationSettings, key: OwnerKey) -> NamedFingerprint:
    """The fingerprint; runs of a sweep that follow one another mostly have that of the run before."""
    for of, asked, found in _LAST:
        if of() is dataset and asked == (federation, key.secret):
            return found
    found = take_named(dataset, federation, key)
    _LAST[:] = [(ref(dataset), (federation, key.secret), found)]
    return found


def _require_same_data(
    of: Path, found: NamedFingerprint | None, why: str, warn: Warn, *, test_rows_alone: bool
) -> None:
    stored = read_fingerprint(of)
    what = "test rows" if test_rows_alone else "data"
    if stored is None or found is None or stored.key != found.fingerprint.key:
        why = why or ("it has no fingerprint of them" if stored is None else "their fingerprint has another key")
        warn(f"cannot tell whether these are the {what} that the run in {of} was started with: {why}")
        return
    if test_rows_alone and same_test_rows(stored, found.fingerprint):
        return
    if different := differences(stored, found):
        remedy = "give rows by --data" if test_rows_alone else "start another run"
        raise RunError(
            f"the {what} have changed since the run in {of} was started: {'; '.join(different)}; put back the data it "
            f"was started with, or {remedy}"
        )
