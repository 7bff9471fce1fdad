"""Ctrl-C and SIGTERM: during training a request, for the round in hand is finished first; otherwise the end in a line.

A command line listens from its start to its end. This module is imported before all others, and imports little.
"""

import atexit
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended."""


class Stop:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False

    @property
    def requested(self) -> bool:
        return self.asked


class TimedStop(Stop):
    """Also once so many seconds have passed since it was made; `timed_out` tells this from being asked."""

    def __init__(self, asked: Stop, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._asked, self._clock, self._end = asked, clock, clock() + seconds

    @property
    def timed_out(self) -> bool:
        """Whether the time is up, and nobody has asked."""
        return not self._asked.requested and self._clock() >= self._end

    @property
    def requested(self) -> bool:
        return self._asked.requested or self.timed_out


class _Heard:
    """What this process knows of Ctrl-C: how much it has `in_hand`, and whether it was `interrupted` meanwhile."""

    listening = False
    in_hand = 0
    interrupted = False


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
        stop.asked = True
        for each in numbers:
            signal.signal(each, before[each])

    for number in numbers:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def leave_on_interrupt() -> None:
    """Have Ctrl-C end this process, which is one command, in a line and with exit code 130.

    At once, for libraries that are being loaded take no exception well; but a KeyboardInterrupt where something is in
    hand, and at once by the next Ctrl-C. A process that was told to ignore Ctrl-C goes on doing so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return

    def hear(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if _Heard.in_hand and not _Heard.interrupted:
            _Heard.interrupted = True
            raise KeyboardInterrupt
        shown = b"\033[?25h" if os.isatty(2) else b""  # a bar may have hidden the cursor
        with contextlib.suppress(OSError):  # nobody reads it any more
            os.write(2, shown + b"error: interrupted\n")
        os._exit(INTERRUPTED)

    _Heard.listening = True
    signal.signal(signal.SIGINT, hear)


@contextlib.contextmanager
def in_hand() -> Iterator[None]:
    """Something is to be put in order before the process ends, such as a folder that is written."""
    _Heard.in_hand += 1
    try:
        yield
    finally:
        _Heard.in_hand -= 1


def was_interrupted() -> bool:
    """Whether Ctrl-C has raised a KeyboardInterrupt, be it that some library made another error of it."""
    return _Heard.interrupted


def end_with(code: int) -> None:
    """All is said: from now on Ctrl-C ends the process with this exit code, without another word."""
    if _Heard.listening:
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
        # Python's own last steps would make it the signal that kills, whose exit code is another
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
