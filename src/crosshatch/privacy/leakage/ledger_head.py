"""How far ledgers had come, kept beside the owner's key: a ledger that is shorter has lost its last lines.

A file per ledger, named by the seal of its first line, so that it is known again wherever it lies. Who takes lines off
a ledger *and* sets its head back or removes it is not noticed, nor who empties it and spoils its head; nor is a ledger
that was moved elsewhere and begun anew under its old name on another machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import msgspec

from crosshatch.errors import ConfigError


class _Head(msgspec.Struct, frozen=True):
    """So many lines, and the seal of the last of them."""

    path: str
    lines: int
    last: str
    seal: str = ""


@dataclass(frozen=True)
class Heads:
    """The folder of all heads of one owner, and the key they are sealed with."""

    folder: Path
    secret: bytes

    def check(self, path: Path, seals: list[str]) -> None:
        """A ConfigError where a ledger at this path, with lines of these seals, had others behind them before."""
        head = self._read(self._file(seals[0])) if seals else self._emptied(path)
        if head is not None and (len(seals) < head.lines or seals[head.lines - 1] != head.last):
            raise ConfigError(
                f"privacy.ledger = '{path}' has {len(seals)} lines and had {head.lines}: its last ones were taken off, "
                f"restore the file as it was (what is known of it is in {self.folder})"
            )

    def keep(self, path: Path, seals: list[str]) -> None:
        """Remember how far it has come; the file is there whole or not at all."""
        head = _Head(str(path.resolve()), len(seals), seals[-1])
        file = self._file(seals[0])
        beside = file.with_name(f"{file.name}.{os.getpid()}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            beside.write_bytes(msgspec.json.encode(msgspec.structs.replace(head, seal=self._seal(head))))
            beside.replace(file)
        except OSError as error:
            raise ConfigError(f"{self.folder}: how far ledgers have come cannot be kept ({error.strerror})") from None

    def _file(self, first: str) -> Path:
        return self.folder / f"{first}.json"

    def _emptied(self, path: Path) -> _Head | None:
        """Of a ledger that lay here before and is empty now, or gone; spoiled heads of others are no matter of it."""
        here = str(path.resolve())
        return next(
            (self._read(file) for file in sorted(self.folder.glob("*.json")) if _decode(file).path == here), None
        )

    def _read(self, file: Path) -> _Head | None:
        if not file.is_file():
            return None
        head = _decode(file)
        if head.seal != self._seal(head):
            raise ConfigError(f"{file} was changed, or is of another key: restore it as it was")
        return head

    def _seal(self, head: _Head) -> str:
        content = msgspec.json.encode(msgspec.structs.replace(head, seal=""))
        return blake2b(content, key=self.secret, digest_size=16, person=b"ledger head").hexdigest()


def _decode(file: Path) -> _Head:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Head)
    except (OSError, msgspec.DecodeError):
        return _Head("", 0, "")
