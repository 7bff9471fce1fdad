"""Output that nobody reads any more, as of `crosshatch train ... | head -1`."""

import os
import sys
from typing import TextIO

from crosshatch.errors import visible


def say(line: str, stream: TextIO | None = None) -> None:
    """Print a line at once, on stdout if left out; whoever says so goes on where nobody reads it."""
    stream = sys.stdout if stream is None else stream
    try:
        print(visible(line), file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)


def silence(stream: TextIO) -> None:
    """Whatever is still to be written to the stream goes nowhere, without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
