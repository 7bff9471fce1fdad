"""Files that are there whole or not at all, and what to say when the disk does not take them."""

import contextlib
import csv
import errno
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from crosshatch.errors import RunError

PARTIAL = ".partial"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that a reader or a crash never meets half written."""
    with growing(path) as file:
        file.write(content)


def write_json(path: Path, content: object, *, allow_nan: bool = True) -> None:
    write_whole(path, (json.dumps(content, indent=2, allow_nan=allow_nan) + "\n").encode())


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    write_whole(path, csv_text(rows).encode())


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


@contextlib.contextmanager
def growing(path: Path) -> Iterator[BinaryIO]:
    """A file that is written beside its place, onto the disk, and then renamed; nothing is left of one that failed.

    Of two processes that write the same file at once, each has its own beside it, and the last to end has the place.
    """
    beside = path.with_name(f"{path.name}.{os.urandom(4).hex()}{PARTIAL}")
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut; where folders cannot be opened (Windows) the system sees to it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def writing(folder: Path, other: str = "another --out") -> Iterator[None]:
    """Turn the disk's refusals into one line; `other` is what may be chosen instead."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise RunError(
                f"no space left to write {error.filename or folder} ({error.strerror}): free some space or choose "
                f"{other}"
            ) from error
        raise RunError(
            f"cannot write {error.filename or folder} ({error.strerror}): choose {other} or change permissions"
        ) from error
