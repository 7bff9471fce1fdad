"""What a process tells whoever started it, now and then: where each of its parties is, and whom it waits for."""

from __future__ import annotations

import os
import threading
import time

import msgspec

from crosshatch.parties.line import Name
from crosshatch.runtime.process import Process

_OFTEN = 0.2  # seconds


class PartyProgress(msgspec.Struct, array_like=True):
    """Of one party: rounds done, bytes sent in training, and for whom it has waited how many seconds."""

    round: int
    bytes: int
    waits_for: Name | None = None
    seconds: float = 0.0


def keep_telling(process: Process) -> None:
    """In a thread of its own, for as long as the process lives; a line on standard output each time."""
    threading.Thread(target=_tell, args=(process,), daemon=True).start()


def _tell(process: Process) -> None:
    pause = threading.Event()
    while True:
        try:
            os.write(1, msgspec.json.encode(told_by(process)) + b"\n")
        except OSError:
            return  # nobody listens any more
        pause.wait(_OFTEN)


def told_by(process: Process) -> dict[Name, PartyProgress]:
    """Its parties as they are now."""
    found = {}
    for name, life in process.lives.items():
        waits = life.line.waits_for
        told = PartyProgress(life.party.round, life.party.meter.bytes)
        if waits is not None:
            told.waits_for, told.seconds = waits[0], round(time.monotonic() - life.line.waits_since, 1)
        found[name] = told
    return found
