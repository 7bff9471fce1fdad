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
from typing import ClassVar

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C or SIGTERM has ended."""
_SIGNALS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}  # as nobody has changed them


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
    """What this process knows of signals: which it listens to, how much it has `in_hand`, and if one came meanwhile."""

    listening: ClassVar[list[signal.Signals]] = []
    in_hand = 0
    interrupted = False


@contextlib.contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """While inside, the first signal sets `requested`; a second one ends the process as usual."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals go to the main thread only
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def ask(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        stop.asked = True
        for each in before:
            signal.signal(each, before[each])

    for number in before:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number in before:
            signal.signal(number, before[number])


def leave_on_interrupt() -> None:
    """Have Ctrl-C or SIGTERM end this process, which is one command, in a line and with exit code 130.

    At once, for libraries that are being loaded take no exception well; but a KeyboardInterrupt where something is in
    hand, and at once by the next one. A process that was told to ignore one of them goes on doing so.
    """

    def hear(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signature of a handler
        if _Heard.in_hand and not _Heard.interrupted:
            _Heard.interrupted = True
            raise KeyboardInterrupt
        shown = b"\033[?25h" if os.isatty(2) else b""  # a bar may have hidden the cursor
        with contextlib.suppress(OSError):  # nobody reads it any more
            os.write(2, shown + b"error: interrupted\n")
        os._exit(INTERRUPTED)

    for number, usual in _SIGNALS.items():
        if signal.getsignal(number) is usual:
            _Heard.listening.append(number)
            signal.signal(number, hear)


@contextlib.contextmanager
def in_hand() -> Iterator[None]:
    """Something is to be put in order before the process ends, such as a folder that is written."""
    _Heard.in_hand += 1
    try:
        yield
    finally:
        _Heard.in_hand -= 1


def was_interrupted() -> bool:
    """Whether a signal has raised a KeyboardInterrupt, be it that some library made another error of it."""
    return _Heard.interrupted


def end_with(code: int) -> None:
    """All is said: from now on a signal ends the process with this exit code, without another word."""
    for number in _Heard.listening:
        signal.signal(number, lambda *_: os._exit(code))
        # Python's own last steps would make it the signal that kills, whose exit code is another
        atexit.register(signal.signal, number, signal.SIG_IGN)
