"""The processes of a launched run: started, watched, started again where they die, and ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from crosshatch.errors import RunError
from crosshatch.runs.launching.process_plan import HELD, REFUSED
from crosshatch.runtime.store import write_whole

_LOG, _PID = "log.txt", "pid"
_PAUSES = (0.0, 0.5, 2.0, 10.0)  # seconds before a process that died is started again, the first time and so on
_MOST = 10  # times
_LOOK = 0.02  # seconds between two looks


@dataclass
class Children:
    """One process per folder below `folder`; `say` gets a line for each that dies."""

    folder: Path
    houses: Iterable[str]
    say: Callable[[str], object]
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)
    _died: dict[str, list[float]] = field(default_factory=dict, init=False)  # when
    _buried: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)  # whose death was told

    def start(self) -> None:
        """All of them."""
        for house in self.houses:
            self._start(house)

    def check(self) -> None:
        """Start again who died; a RunError with its last words where one cannot go on, or dies again and again."""
        for house, process in list(self._running.items()):
            code = process.poll()
            if code in (None, 0):
                continue
            if code == REFUSED:
                raise RunError(self._last_words(house))
            died = self._died.setdefault(house, [])
            if process is not self._buried.get(house):
                self._buried[house] = process
                _close(process)
                died.append(time.monotonic())
                if len(died) > _MOST:
                    raise RunError(f"{house} died {len(died)} times, last with code {code}: {self._last_words(house)}")
                self.say(f"{house} died with code {code} and is started again")
            if time.monotonic() - died[-1] >= _PAUSES[min(len(died), len(_PAUSES)) - 1]:
                self._start(house)

    def stop(self) -> None:
        """End all that run; what they have stored they can go on from."""
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
        for process in self._running.values():
            process.wait()
            _close(process)

    def end_together(self, seconds: float) -> None:
        """Have all stop after the same round, so that none of them has anything to run again; or give it up."""
        until = time.monotonic() + seconds
        for house, process in self._running.items():
            (self.folder / house / HELD).unlink(missing_ok=True)
            _order(process, "hold")
        held: dict[str, int] = {}
        while held.keys() != self._running.keys():
            if time.monotonic() > until or any(process.poll() for process in self._running.values()):
                return
            for house, process in self._running.items():
                path = self.folder / house / HELD
                if path.exists() or process.poll() == 0:
                    held[house] = int(path.read_bytes()) if path.exists() else 0
            time.sleep(_LOOK)
        for process in self._running.values():
            _order(process, f"until {max(held.values())}")
        self.wait(until - time.monotonic())

    def wait(self, seconds: float) -> None:
        """Let those end that have come to their end."""
        until = time.monotonic() + seconds
        for process in self._running.values():
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                return

    def _start(self, house: str) -> None:
        command = [sys.executable, "-m", "crosshatch.runs.launching.child", str(self.folder / house)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with open(self.folder / house / _LOG, "ab") as log:
            self._running[house] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        write_whole(self.folder / house / _PID, str(self._running[house].pid).encode())

    def _last_words(self, house: str) -> str:
        lines = (self.folder / house / _LOG).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"{house} ended without a word"


def _order(process: subprocess.Popen[bytes], what: str) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended
        process.stdin.write(f"{what}\n".encode())
        process.stdin.flush()


def _close(process: subprocess.Popen[bytes]) -> None:
    """The pipe to it, whose end it would take for ours."""
    assert process.stdin is not None
    process.stdin.close()
