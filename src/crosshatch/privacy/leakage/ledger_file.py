"""A file at the label's holder that only grows: what was given of its labels, how they are divided, what was read.

Every line is an object of its own, on the disk before what it is about is given out: the runs before they begin, each
gradient that is decrypted for a silo before it is told. It is sealed with the owner's key and
names the seal of the line before it, so that a line that was changed, or taken out from among others, is noticed; that
the last ones were taken off, or all, is noticed by what is kept beside the owner's key (`ledger_head.py`). A last line
without an end was never complete, so that nothing was given after it; it is written over.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec
import numpy as np

from crosshatch.errors import ConfigError
from crosshatch.privacy.leakage.equations import GivenEquations, Telling
from crosshatch.privacy.leakage.ledger_head import Heads
from crosshatch.privacy.leakage.row_keys import RowKeys, from_text, to_text

try:
    import fcntl
except ImportError:  # Windows: no locks of this kind
    fcntl = None  # type: ignore[assignment]


class _Division(msgspec.Struct, frozen=True, tag="division", tag_field="kind", forbid_unknown_fields=True):
    """The seed by which some labels are divided."""

    seal: str
    before: str
    key: str
    labels: str
    seed: int


class _Line(msgspec.Struct, frozen=True, tag="given", tag_field="kind", forbid_unknown_fields=True):
    """What a run was about to give."""

    seal: str
    before: str
    key: str
    labels: str
    run: str
    clear: bool
    told: tuple[Telling, ...]
    rows: dict[str, str]
    batch_of: str
    left_out: dict[str, str]


class _Read(msgspec.Struct, frozen=True, tag="read", tag_field="kind", forbid_unknown_fields=True):
    """A gradient of a batch, which is known by the digest of its rows, that is decrypted for a silo."""

    seal: str
    before: str
    key: str
    silo: str
    batch: str


_AnyLine = _Division | _Line | _Read
_BEGINNING = b'{"kind":"'
_FIRST = "first "  # what a first line says of the line before it, with random digits that tell ledgers apart


class LedgerKey(Protocol):
    """The owner's key, under which all digests are."""

    @property
    def name(self) -> str:
        """What tells it from others."""
        ...

    @property
    def secret(self) -> bytes:
        """The key itself, 32 bytes."""
        ...

    @property
    def ledgers(self) -> Path:
        """The folder in which it is kept how far ledgers have come."""
        ...


@dataclass
class Ledger:
    """The lines of a ledger, the first `size` bytes of its file; while it is open `append` and others add to them.

    `read` has how many gradients were decrypted, by silo and batch.
    """

    path: Path
    key: LedgerKey
    file: BinaryIO = field(init=False)
    seeds: dict[str, int] = field(default_factory=dict)
    given: list[GivenEquations] = field(default_factory=list)
    read: Counter[tuple[str, str]] = field(default_factory=Counter)
    seals: list[str] = field(default_factory=list)
    size: int = 0

    @property
    def last(self) -> str:
        """The seal of the last line; something new where there is none."""
        return self.seals[-1] if self.seals else f"{_FIRST}{secrets.token_hex(8)}"

    @property
    def heads(self) -> Heads:
        """Where it is kept how far it has come."""
        return Heads(self.key.ledgers, self.key.secret)

    def keep_seed(self, labels: str, seed: int) -> None:
        """Remember how labels are divided."""
        self._write(_Division("", self.last, self.key.name, labels, seed))
        self.seeds[labels] = seed

    def append(self, given: GivenEquations, run: str) -> None:
        """Count what a run is about to give."""
        rows, left_out = given.rows.encode(), given.left_out.encode()
        batch_of, labels = to_text(given.batch_of.astype("<u4")), given.rows.labels
        told = given.told
        self._write(_Line("", self.last, self.key.name, labels, run, given.clear, told, rows, batch_of, left_out))
        self.given.append(given)

    def count(self, silo: str, batch: str) -> None:
        """Count a gradient that is about to be decrypted."""
        self._write(_Read("", self.last, self.key.name, silo, batch))
        self.read[silo, batch] += 1

    def _write(self, line: _AnyLine) -> None:
        seal = _seal(line, self.key)
        content = msgspec.json.encode(msgspec.structs.replace(line, seal=seal)) + b"\n"
        try:
            self.file.write(content)
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise ConfigError(f"privacy.ledger = '{self.path}' cannot be written ({error.strerror})") from None
        self.seals.append(seal)
        self.size += len(content)
        self.heads.keep(self.path, self.seals)


@contextmanager
def open_ledger(path: Path, key: LedgerKey, *, write: bool, known: Ledger | None = None) -> Iterator[Ledger]:
    """The ledger, nobody else's as long as it is open; without `write` it is read alone, and need not be there.

    `known` is what was read of it before: only lines behind that are.
    """
    if fcntl is None:
        raise ConfigError(f"privacy.ledger = '{path}' needs a system with file locks: leave it out")
    ledger = known or Ledger(path, key)
    if not write and not path.exists():
        ledger.heads.check(path, [])
        yield ledger
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
        if write and known is None:
            _sync(path.parent)
        fcntl.flock(file, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        ledger.file = file
        if os.fstat(file.fileno()).st_size < ledger.size:
            raise ConfigError(f"privacy.ledger = '{path}' was cut off while a run counted in it: restore the file")
        file.seek(ledger.size)
        _read(ledger)
        ledger.heads.check(path, ledger.seals)
        if write:
            file.seek(ledger.size)
            file.truncate()  # what a crash cut off
        yield ledger


def _sync(folder: Path) -> None:
    """A new file outlasts a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(ledger: Ledger) -> None:
    """Take in all whole lines."""
    for number, raw in enumerate(ledger.file, start=len(ledger.seals) + 1):
        if not raw.endswith(b"\n") and (raw.startswith(_BEGINNING) or _BEGINNING.startswith(raw)):
            break
        _take_in(ledger, raw.removesuffix(b"\n"), f"privacy.ledger = '{ledger.path}', line {number}")
        ledger.size += len(raw)


def _take_in(ledger: Ledger, raw: bytes, place: str) -> None:
    try:
        line: _AnyLine = msgspec.json.decode(raw, type=_AnyLine)
        given = _given(line) if isinstance(line, _Line) else None
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(f"{place} is not one of a ledger ({error}): name another file, or restore it") from None
    if line.key != ledger.key.name:
        raise ConfigError(
            f"{place} was written under another key of fingerprints: restore the key, see CROSSHATCH_KEY_FILE"
        )
    if line.seal != _seal(line, ledger.key):
        raise ConfigError(f"{place} was changed: restore the file as it was")
    follows = line.before == ledger.seals[-1] if ledger.seals else line.before.startswith(_FIRST) or not line.before
    if not follows:
        raise ConfigError(f"{place} does not follow the line before it, one was taken out: restore the file as it was")
    if given is not None:
        ledger.given.append(given)
    elif isinstance(line, _Division):
        ledger.seeds[line.labels] = line.seed
    elif isinstance(line, _Read):
        ledger.read[line.silo, line.batch] += 1
    ledger.seals.append(line.seal)


def _given(line: _Line) -> GivenEquations:
    rows, left_out = RowKeys.decode(line.labels, line.rows), RowKeys.decode(line.labels, line.left_out)
    batch_of = from_text(line.batch_of, "<u4").astype(np.uint32)
    if len(batch_of) != len(rows) or any(one.sums < 1 or one.times < 1 for one in line.told):
        raise ValueError("a batch for every row, and at least one sum")
    return GivenEquations(rows, batch_of, line.told, left_out, line.clear)


def _seal(line: _AnyLine, key: LedgerKey) -> str:
    """A keyed digest of all that a line says."""
    content = msgspec.json.encode(msgspec.structs.replace(line, seal=""))
    return blake2b(content, key=key.secret, digest_size=16, person=b"ledger").hexdigest()


def same_training_rows(rows: RowKeys, given: Sequence[GivenEquations]) -> list[GivenEquations]:
    """Runs on these rows, those included that they left out."""
    found = []
    for one in given:
        present = (rows.places_in(one.rows) >= 0) | (rows.places_in(one.left_out) >= 0)
        if len(one.rows) + len(one.left_out) == len(rows) and present.all():
            found.append(one)
    return found
