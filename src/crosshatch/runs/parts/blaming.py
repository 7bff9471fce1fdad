"""Errors that come out of a user's own file are the user's to correct: one line with file and line, no traceback."""

import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from crosshatch.errors import CrosshatchError, ModelError


@contextmanager
def blaming(files: Collection[Path]) -> Iterator[None]:
    """Turn what is raised in one of these files, a call of `sys.exit` too, into a ModelError; leave the rest alone."""
    try:
        yield
    except CrosshatchError:
        raise
    except (Exception, SystemExit) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) in files]
        if not frames:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        place = f"{frames[-1].filename}, line {frames[-1].lineno}"
        raise ModelError(f"the code in {place} failed with {what}: correct it there") from error
