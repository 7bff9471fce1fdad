"""A file at the label's holder that only grows: what was given of its labels, and how they are divided.

Every line is an object of its own, written and on the disk before the run it is about begins, and names the digest of
the line before it: a line that was changed or taken out is noticed. A last line without an end was never complete, so
its run never began; it is written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from crosshatch.errors import ConfigError
from crosshatch.privacy.leakage.equations import Given, Telling
from crosshatch.privacy.leakage.row_keys import RowKeys, from_text, to_text

try:
    import fcntl
except ImportError:  # Windows: no locks of this kind
    fcntl = None  # type: ignore[assignment]


class _Division(msgspec.Struct, frozen=True, tag="division", tag_field="kind", forbid_unknown_fields=True):
    """The seed by which some labels are divided."""

    before: str
    key: str
    labels: str
    seed: int


class _Line(msgspec.Struct, frozen=True, tag="given", tag_field="kind", forbid_unknown_fields=True):
    """What a run was about to give."""

    before: str
    key: str
    labels: str
    run: str
    clear: bool
    told: tuple[Telling, ...]
    rows: dict[str, str]
    batch_of: str
    left_out: dict[str, str]


_AnyLine = _Division | _Line


@dataclass
class Ledger:
    """The lines of a ledger while it is open; `append` and `keep_seed` add to them."""

    path: Path
    key: str  # name of the owner's key, under which all digests are
    file: BinaryIO
    seeds: dict[str, int]
    given: list[Given]
    last: str

    def seed_of(self, labels: str) -> int | None:
        """The seed by which these labels are divided, if they were before."""
        return self.seeds.get(labels)

    def keep_seed(self, labels: str, seed: int) -> None:
        """Remember how labels are divided."""
        self._write(_Division(self.last, self.key, labels, seed))
        self.seeds[labels] = seed

    def append(self, given: Given, run: str) -> None:
        """Count what a run is about to give."""
        rows, left_out = given.rows.encode(), given.left_out.encode()
        batch_of = to_text(given.batch_of.astype("<u4"))
        line = _Line(self.last, self.key, given.rows.labels, run, given.clear, given.told, rows, batch_of, left_out)
        self._write(line)
        self.given.append(given)

    def _write(self, line: _AnyLine) -> None:
        content = msgspec.json.encode(line)
        try:
            self.file.write(content + b"\n")
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise ConfigError(f"privacy.ledger = '{self.path}' cannot be written ({error.strerror})") from None
        self.last = _digest(content)


@contextmanager
def open_ledger(path: Path, key: str, *, write: bool) -> Iterator[Ledger]:
    """The ledger, nobody else's as long as it is open; without `write` it is read alone, and need not be there."""
    if fcntl is None:
        raise ConfigError(f"privacy.ledger = '{path}' needs a system with file locks: leave it out")
    if not write and not path.exists():
        with open(os.devnull, "rb") as nothing:
            yield Ledger(path, key, nothing, {}, [], "")
        return
    try:
        file = open(path, "r+b" if path.exists() else "x+b") if write else open(path, "rb")  # noqa: SIM115
    except FileExistsError:
        file = open(path, "r+b")  # noqa: SIM115 - another run was first
    except OSError as error:
        raise ConfigError(
            f"privacy.ledger = '{path}' cannot be opened ({error.strerror}): name a file in a folder that is there"
        ) from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        ledger = Ledger(path, key, file, {}, [], "")
        whole = _read(ledger)
        if write:
            file.seek(whole)
            file.truncate()  # what a crash cut off
        yield ledger


def _read(ledger: Ledger) -> int:
    """Take in all whole lines; how many bytes they are."""
    size = 0
    for number, raw in enumerate(ledger.file, start=1):
        if not raw.endswith(b"\n"):
            break
        size += len(raw)
        _take_in(ledger, raw[:-1], f"privacy.ledger = '{ledger.path}', line {number}")
    return size


def _take_in(ledger: Ledger, raw: bytes, place: str) -> None:
    try:
        line: _AnyLine = msgspec.json.decode(raw, type=_AnyLine)
        given = _given(line) if isinstance(line, _Line) else None
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"{place} is not one of a ledger ({error}): restore the file as it was") from None
    if line.before != ledger.last:
        raise ConfigError(f"{place} does not follow the line before it, one was changed or taken out: restore the file")
    if line.key != ledger.key:
        raise ConfigError(
            f"{place} was written under another key of fingerprints: restore the key, see CROSSHATCH_KEY_FILE"
        )
    if given is not None:
        ledger.given.append(given)
    elif isinstance(line, _Division):
        ledger.seeds[line.labels] = line.seed
    ledger.last = _digest(raw)


def _given(line: _Line) -> Given:
    rows, left_out = RowKeys.decode(line.labels, line.rows), RowKeys.decode(line.labels, line.left_out)
    batch_of = from_text(line.batch_of, "<u4").astype(np.uint32)
    if len(batch_of) != len(rows) or any(one.sums < 1 or one.times < 1 for one in line.told):
        raise ValueError("a batch for every row, and at least one sum")
    return Given(rows, batch_of, line.told, left_out, line.clear)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def same_training_rows(rows: RowKeys, given: Sequence[Given]) -> list[Given]:
    """Runs on these rows, those included that they left out."""
    found = []
    for one in given:
        present = (rows.places_in(one.rows) >= 0) | (rows.places_in(one.left_out) >= 0)
        if len(one.rows) + len(one.left_out) == len(rows) and present.all():
            found.append(one)
    return found
