"""The processes of a launched run: started, watched, started again where they die, held, and ended."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from crosshatch.errors import RunError
from crosshatch.parties.line import Name
from crosshatch.runs.launching.process_plan import HELD, REFUSED, PartyProgress
from crosshatch.runtime.store import write_whole

_LOG, _PID = "log.txt", "pid"
_PAUSES = (0.0, 0.5, 2.0, 10.0)  # seconds before a process that died is started again, the first time and so on
_MOST = 10  # times


@dataclass
class Children:
    """One process per folder below `folder`; `say` gets a line for each that dies. `told`: what parties said."""

    folder: Path
    houses: Iterable[str]
    say: Callable[[str], object]
    told: dict[Name, PartyProgress] = field(default_factory=dict, init=False)
    _spoken: set[int] = field(default_factory=set, init=False)  # processes that have told something
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)
    _died: dict[str, list[float]] = field(default_factory=dict, init=False)  # when
    _buried: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, init=False)  # whose death was told
    _last: bytes | None = field(default=None, init=False)  # what all were told last, and who starts later is told too

    def start(self) -> None:
        for house in self.houses:
            self._start(house)

    @property
    def have_ended(self) -> bool:
        """Whether all have come to their end."""
        return all(process.poll() == 0 for process in self._running.values())

    def check(self) -> None:
        """Start again who died; a RunError with its last words where one cannot go on, or dies again and again."""
        for house, process in list(self._running.items()):
            code = process.poll()
            if code in (None, 0):
                continue
            if code == REFUSED:
                raise RunError(self._last_words(house))
            if code > 0 and process.pid not in self._spoken:  # nobody killed it: it would break again
                raise RunError(f"{house} cannot start: {self._last_words(house)}")
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

    def hold(self) -> None:
        """Have all begin no further round, and say how many will be over then; see `agree`."""
        for house in self._running:
            (self.folder / house / HELD).unlink(missing_ok=True)
        self._tell_all(b"hold")

    def agree(self) -> int | None:
        """Once all have said it, tell them to end after the latest of these rounds; None: some have not yet."""
        said = []
        for house, process in self._running.items():
            if process.poll() == 0:
                continue
            path = self.folder / house / HELD
            if not path.is_file():
                return None
            said.append(int(path.read_text()))
        last = max(said, default=0)
        self._tell_all(f"until {last}".encode())
        return last

    def stop(self) -> None:
        """End all that run, at once; what they have stored they can go on from."""
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
        for process in self._running.values():
            process.wait()
            _close(process)

    def _tell_all(self, line: bytes) -> None:
        self._last = line
        for house in self._running:
            self._tell(house, line)

    def _tell(self, house: str, line: bytes) -> None:
        pipe = self._running[house].stdin
        assert pipe is not None
        with suppress(OSError, ValueError):  # it has ended, or died and is told when it is started again
            pipe.write(line + b"\n")
            pipe.flush()

    def _start(self, house: str) -> None:
        command = [sys.executable, "-m", "crosshatch.runs.launching.child", str(self.folder / house)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        with open(self.folder / house / _LOG, "ab") as log:
            self._running[house] = process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=log, env=environment, start_new_session=True
            )
        assert process.stdout is not None
        threading.Thread(target=self._listen, args=(process.pid, process.stdout), daemon=True).start()
        write_whole(self.folder / house / _PID, str(process.pid).encode())
        if self._last is not None:
            self._tell(house, self._last)

    def _listen(self, pid: int, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                try:
                    self.told |= msgspec.json.decode(line, type=dict[Name, PartyProgress])
                except msgspec.MsgspecError:
                    continue  # something that a library has printed
                self._spoken.add(pid)

    def tracebacks(self) -> str:
        """All that was said by processes that broke; empty: none did."""
        logs = {house: (self.folder / house / _LOG).read_text(errors="replace") for house in self._running}
        return "\n".join(f"{house}:\n{log}" for house, log in logs.items() if "Traceback (most recent" in log)

    def _last_words(self, house: str) -> str:
        lines = (self.folder / house / _LOG).read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"{house} ended without a word"


def _close(process: subprocess.Popen[bytes]) -> None:
    """The pipe to it, whose end it would take for ours."""
    assert process.stdin is not None
    with suppress(OSError):  # what was to be written nobody reads
        process.stdin.close()
