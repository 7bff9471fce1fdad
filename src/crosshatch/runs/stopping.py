"""Ctrl-C and SIGTERM as a request: the round in hand is finished first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType


@dataclass
class Stop:
    """Whether somebody asked to stop."""

    requested: bool = False


@contextlib.contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """While inside, the first signal sets `requested`; a second one ends the process as usual."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals go to the main thread only
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        stop.requested = True
        for each in numbers:
            signal.signal(each, before[each])

    for number in numbers:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number in numbers:
            signal.signal(number, before[number])
