"""A run of a sweep as a job for whoever has a core free: a local process or a machine of a cluster."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from crosshatch.errors import CrosshatchError, DivergenceError
from crosshatch.report.runs import read_run
from crosshatch.runs.config import decode_config
from crosshatch.runs.directory import RunDirectory
from crosshatch.runs.one_writer import BusyError
from crosshatch.runs.watcher import Watcher

BUSY_SECONDS = 10.0  # for the processes of a sweep that was killed to end


@dataclass(frozen=True)
class Job:
    """A run to be finished: its config as TOML, its directory and the data folder."""

    name: str
    config: str
    out: str
    folder: str | None
    rounds: int
    threads: int

    @property
    def is_finished(self) -> bool:
        """Whether the directory has a run of so many rounds, or one that ended by itself before."""
        directory = RunDirectory(Path(self.out))
        if not directory.summary.is_file():
            return False
        asked: int = tomllib.loads(directory.config.read_text(encoding="utf-8"))["run"]["rounds"]
        ran: int = json.loads(directory.summary.read_text(encoding="utf-8"))["rounds"]
        return ran < asked or asked >= self.rounds


@dataclass(frozen=True)
class Ended:
    """How a job ended. `refused`: its config was, `failed`: its process broke down; `why` says more of both."""

    state: Literal["finished", "diverged", "refused", "failed", "stopped"]
    why: str = ""


Event = tuple[Job, "int | Ended"]
"""A job and the rounds it has done, or how it ended."""


class Executor(AbstractContextManager["Executor"], Protocol):
    """Whoever works jobs off."""

    def submit(self, job: Job) -> None:
        """Take a job; it begins when its turn comes."""
        ...

    def events(self) -> Iterator[Event | None]:
        """What happens until all jobs have ended; None from time to time, so that the caller can look around."""
        ...

    def stop(self) -> None:
        """Begin no more jobs and ask those under way to keep a checkpoint and end."""
        ...


def run_job(job: Job, tell: Callable[[int], None] = lambda _: None) -> Ended:
    """Run a job here, or go on with it; `tell` gets the rounds done."""
    from crosshatch.runs.train import train  # late: whoever hands out jobs need not wait for torch

    config = decode_config(tomllib.loads(job.config))
    folder = None if job.folder is None else Path(job.folder)
    patient_until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            outcome = train(config, out=Path(job.out), folder=folder, resume=True, watcher=_Teller(tell))
            return Ended("finished" if outcome.finished else "stopped")
        except DivergenceError:
            return Ended("diverged", f"at round {read_run(job.out).summary['diverged']['round']}")
        except BusyError as error:
            if time.monotonic() > patient_until:
                return Ended("refused", str(error))
            time.sleep(0.2)
        except CrosshatchError as error:
            return Ended("refused", str(error))


class _Teller(Watcher):
    """Passes on the rounds done, a few times per second at most; what else happens is in the run directory."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._told = 0.0

    def advance(self, round: int) -> None:
        """Pass it on."""
        now = time.monotonic()
        if now - self._told > 0.25:
            self._told = now
            self._tell(round)
