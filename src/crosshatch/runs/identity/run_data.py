"""A run's data, read with its fingerprint; refused where they are not those that the run was started with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from crosshatch.data.build import load_dataset
from crosshatch.data.dataset import Dataset
from crosshatch.data.identity.differences import differences
from crosshatch.data.identity.fingerprint import Fingerprint, NamedFingerprint
from crosshatch.data.identity.owner_key import owner_key
from crosshatch.data.identity.take_fingerprint import take_named
from crosshatch.errors import RunError
from crosshatch.runs.config import Config
from crosshatch.runs.identity.kept_fingerprint import read_fingerprint

Warn = Callable[[str], None]


def read_data(
    config: Config, folder: Path | None, *, of: Path | None = None, warn: Warn = lambda _: None
) -> tuple[Dataset, Fingerprint | None]:
    """What a config names, and its fingerprint; None where no key can be kept, of which `warn` is told.

    `of` is the directory of an earlier run of this config, whose data they must be: a RunError says what differs, and
    `warn` is told where it cannot be told.
    """
    dataset = load_dataset(config.data, folder, federation=config.federation)
    found = _identify(dataset, config, warn)
    if of is not None:
        _require_same_data(of, found, warn)
    return dataset, None if found is None else found.fingerprint


def _identify(dataset: Dataset, config: Config, warn: Warn) -> NamedFingerprint | None:
    try:
        key = owner_key()
    except RunError as error:
        warn(f"{error}; this run has no fingerprint of its data")
        return None
    if key.note:
        warn(key.note)
    return take_named(dataset, config.federation, key)


def _require_same_data(of: Path, found: NamedFingerprint | None, warn: Warn) -> None:
    stored = read_fingerprint(of)
    why = "it was made without a fingerprint of them" if stored is None else "their fingerprint has another key"
    different = None if stored is None or found is None else differences(stored, found)
    if different is None:
        warn(f"cannot tell whether these are the data that the run in {of} was made on: {why}")
    elif different:
        raise RunError(
            f"the data have changed since the run in {of} was started: {'; '.join(different)}; put back the data it "
            "was started with, or start another run"
        )
