"""The key of all fingerprints of one user: 256 random bits, made once and kept outside run directories."""

import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from crosshatch.errors import RunError

VARIABLE = "CROSSHATCH_KEY_FILE"
OTHERS = 0o077  # what a file's mode lets others do


@dataclass(frozen=True, repr=False)
class OwnerKey:
    """A key, and a `note` where its file had to be mended.

    >>> OwnerKey(bytes(32)).name
    'b8cb28a62abf8244'
    """

    secret: bytes
    note: str = ""

    @cached_property
    def name(self) -> str:
        """What tells this key from others, and nothing about it."""
        return blake2b(b"which key", key=self.secret, digest_size=8).hexdigest()

    @property
    def ledgers(self) -> Path:
        """The folder beside the key in which it is kept how far ledgers under this key have come."""
        return key_file().with_name("ledgers") / self.name


def key_file() -> Path:
    """Where the key is: the file that CROSSHATCH_KEY_FILE names, else one in the user's folder for settings."""
    if named := os.environ.get(VARIABLE):
        return Path(named)
    settings = os.environ.get("XDG_CONFIG_HOME")
    return (Path(settings) if settings else Path.home() / ".config") / "crosshatch" / "fingerprint.key"


def owner_key() -> OwnerKey:
    """The user's key, made where there is none; processes that make one at the same time agree on it."""
    try:
        path = key_file()
        if not path.exists():
            _make(path)
        note = _keep_from_others(path)
        text = path.read_text(encoding="ascii").strip()
        secret = bytes.fromhex(text)
    except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home folder
        raise RunError(
            f"the key of fingerprints cannot be kept ({error}): name a file that can be written by {VARIABLE}"
        ) from None
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise RunError(
            f"{path} is not a key of 64 hexadecimal digits: restore it, or remove it for a new one, under which older "
            "runs cannot be compared"
        )
    return OwnerKey(secret, note)


def _make(path: Path) -> None:
    """Write a new key beside its place and link it there: whoever comes second finds the first one's."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(32).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)
        except FileExistsError:
            return
        except OSError:  # a file system without links
            if not path.exists():
                os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def _keep_from_others(path: Path) -> str:
    """Take the file from others who could read it, and say so."""
    if os.name != "posix" or not path.stat().st_mode & OTHERS:
        return ""
    path.chmod(0o600)
    if path.stat().st_mode & OTHERS:
        return f"{path}, the key of fingerprints, can be read by others and this cannot be changed: move it elsewhere"
    return f"{path}, the key of fingerprints, could be read by others: it no longer can, remove it for a new one"
