"""What a run of a sweep prints, by a user's own parts, libraries or an error that nobody expected: kept in a file."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosshatch.errors import CrosshatchError
from crosshatch.runs.files import writing


@contextmanager
def printing_into(path: Path) -> Iterator[None]:
    """Whatever this process prints meanwhile goes into a file, the traceback of an error too; none where it is nothing.

    Errors of the user's are told in a line elsewhere, and are not printed.
    """
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    kept = {number: os.dup(number) for number in (1, 2)}
    with open(path, "ab") as file:
        for number in kept:
            os.dup2(file.fileno(), number)
    try:
        yield
    except CrosshatchError:
        raise
    except Exception:
        traceback.print_exc()
        raise
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, handle in kept.items():
            os.dup2(handle, number)
            os.close(handle)
        if path.stat().st_size == 0:
            path.unlink()
