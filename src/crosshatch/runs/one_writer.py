"""One writer per folder: whoever writes into one holds its lock, which ends with the process, however that ends.

The lock is on the file `.writer` in the folder, which says who holds it and is removed in the end; one that a killed
process left keeps nobody out. Where the file system has no locks, the file itself is the lock, and one that was left
has to be removed by hand: the refusal says so.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from crosshatch.errors import RunError
from crosshatch.runs.files import writing
from crosshatch.runs.stopping import in_hand

try:
    import fcntl
except ImportError:  # Windows: no locks of this kind
    fcntl = None  # type: ignore[assignment]

LOCK = ".writer"
_MOST_TRIES = 1_000
_ANSWER_SECONDS = 1.0  # within which a holder has written who it is
_HELD: set[tuple[int, int, Path]] = set()  # by process and thread: a forked process holds nothing


class BusyError(RunError):
    """Another process writes into the folder, so nothing in it is ours to change or remove."""


@contextlib.contextmanager
def one_writer(folder: Path, doing: str) -> Iterator[None]:
    """Be the only one who writes into a folder meanwhile; `doing` says what for, as in "training".

    A folder that is missing is made, and removed afterwards if nothing was put into it. Whoever is second gets a
    BusyError with the process, the host and what it is doing since when; what is in the folder has to be looked at
    inside, where it is certain. The thread that has the folder may ask for it again.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with one_writer(Path(home, "runs", "one"), "training"):
    ...         written = Path(home, "runs", "one", "file").write_text("text")
    ...     sorted(path.name for path in Path(home).rglob("*"))
    ['file', 'one', 'runs']
    """
    key = (os.getpid(), threading.get_ident(), folder.resolve())
    if key in _HELD:
        yield
        return
    with in_hand(), _made(folder, doing) as handle:
        _HELD.add(key)
        try:
            yield
        finally:
            _HELD.discard(key)
            with contextlib.suppress(OSError):
                if _is_at(handle, folder / LOCK):  # somebody may have removed the folder, and another made it again
                    (folder / LOCK).unlink()
            os.close(handle)


@contextlib.contextmanager
def _made(folder: Path, doing: str) -> Iterator[int]:
    """The lock's handle; folders that were missing are removed afterwards where they are empty."""
    made: list[Path] = []
    try:
        with writing(folder):
            handle = _take(folder, doing, made)
        yield handle
    finally:
        for one in reversed(made):
            with contextlib.suppress(OSError):  # something is in it
                one.rmdir()


def is_empty(folder: Path) -> bool:
    """Whether a folder holds nothing but the lock of whoever writes into it."""
    return all(entry.name == LOCK for entry in folder.iterdir())


def _take(folder: Path, doing: str, made: list[Path]) -> int:
    """An open handle on the lock's file, which is ours; to `made` come the folders that were missing."""
    path = folder / LOCK
    for _ in range(_MOST_TRIES):
        with contextlib.suppress(FileNotFoundError, FileExistsError):  # whoever had it removes it just now
            _make(folder, made)
            handle = _open(path, folder)
            if _is_at(handle, path):
                since = datetime.now().astimezone().isoformat(" ", "seconds")
                holder = {"process": os.getpid(), "host": socket.gethostname(), "doing": doing, "since": since}
                text = json.dumps(holder).encode()
                os.ftruncate(handle, 0)
                os.pwrite(handle, text, 0) if hasattr(os, "pwrite") else os.write(handle, text)
                return handle
            os.close(handle)
    if not folder.is_dir():
        there = next(one for one in folder.parents if one.is_dir())
        raise RunError(f"cannot make the folder {folder}: nothing can be made in {there}, choose another --out")
    raise RunError(f"cannot write {path}: others keep removing it, choose another --out")


def _make(folder: Path, made: list[Path]) -> None:
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        raise RunError(f"the output folder {folder} is a file: choose another --out")
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):  # somebody else made it at the same moment
            one.mkdir()
            made.append(one)


def _open(path: Path, folder: Path) -> int:
    """Open the file and lock it, or raise a BusyError."""
    new, others = True, False
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        new = False
        try:
            handle = os.open(path, os.O_RDWR)
        except PermissionError:  # another user's
            handle, others = os.open(path, os.O_RDONLY), True
    try:
        if fcntl is None:
            raise OSError("no locks")
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise BusyError(f"{_refusal(path, folder)}: wait for it, or choose another --out") from None
    except OSError:  # a file system without locks: the file that was not there before is one
        if not new:
            os.close(handle)
            raise BusyError(
                f"{_refusal(path, folder)}: wait for it, or choose another --out; this file system has no locks to "
                f"tell whether it has ended: if so, remove {path}"
            ) from None
    if others:
        path.unlink()  # nobody has it: we make one of our own
    return handle


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one at this path."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _refusal(path: Path, folder: Path) -> str:
    """Who has the folder; what a killed process left is not believed as long as a new holder may not have written."""
    end = time.monotonic() + _ANSWER_SECONDS
    words = ""
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            holder = json.loads(path.read_bytes())
            words = f": process {holder['process']} on {holder['host']}, {holder['doing']} since {holder['since']}"
            if holder["host"] != socket.gethostname() or _lives(int(holder["process"])):
                break
        time.sleep(0.02)
    return f"another process is writing {folder}{words}"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True
