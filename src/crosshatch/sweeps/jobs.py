"""Work for whoever has a core free, a local process or a machine of a cluster; most of it are runs of a sweep.

What a run prints, by a user's own parts, libraries or an error that nobody expected, is kept in a file.
"""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
import traceback
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from crosshatch.errors import CrosshatchError, DivergenceError
from crosshatch.report.runs import read_run
from crosshatch.runs.config import Config, decode_config
from crosshatch.runs.directory import RunDirectory
from crosshatch.runs.files import writing
from crosshatch.runs.one_writer import BusyError
from crosshatch.runs.own_parts.part_files import started_from
from crosshatch.runs.watcher import Watcher

if TYPE_CHECKING:
    from crosshatch.data.dataset import Dataset
    from crosshatch.runs.prepare import Prepared

PRINTED = "printed"
BUSY_SECONDS = 10.0  # for the processes of a sweep that was killed to end


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


def tidy_printed(out: Path) -> None:
    """Without the folder of what was printed, where no run has printed anything."""
    with suppress(OSError):
        (out / PRINTED).rmdir()


class WorkItem(Protocol):
    """What an executor works off: a run, or what is computed beside the runs. It goes to other processes as data."""

    @property
    def name(self) -> str: ...

    @property
    def rounds(self) -> int:
        """How many there are in it, by which progress is told."""
        ...

    @property
    def threads(self) -> int:
        """So many cores are its own."""
        ...

    def run(self, tell: Callable[[int], None], last: LastSet) -> Ended:
        """All of it, here; `tell` gets the rounds done, `last` has the data that were read before."""
        ...

    def broken(self, why: str) -> Ended:
        """How it ended where its process broke down."""
        ...


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
    def home(self) -> Path:
        """The sweep's folder, in which copies of own parts lie, too."""
        return Path(self.out).parents[1]

    @property
    def printed(self) -> Path:
        """The file with what the run has printed, where that is anything."""
        return self.home / PRINTED / f"{self.name}.txt"

    def run(self, tell: Callable[[int], None], last: LastSet) -> Ended:
        """From the start, or on from its checkpoint. What it prints is kept."""
        teller = _Teller(tell)
        try:
            with printing_into(self.printed):
                return _train(self, teller, last)
        except DivergenceError:
            return Ended("diverged", f"at round {read_run(self.out).summary['diverged']['round']}")
        except CrosshatchError as error:
            return Ended("failed" if teller.began else "refused", str(error) + self.where_printed)

    def broken(self, why: str) -> Ended:
        """How it ended where its process broke down: what was printed last says most."""
        text = self.printed.read_text(encoding="utf-8", errors="replace") if self.printed.is_file() else ""
        last = "".join(f": {' '.join(line.split())}" for line in text.strip().splitlines()[-1:])
        return Ended("failed", f"{why}{last}{self.where_printed}")

    @property
    def where_printed(self) -> str:
        """Words that name the file, if there is one."""
        return f" (all it printed: {self.printed})" if self.printed.is_file() and self.printed.stat().st_size else ""

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
    """How a job ended. `refused`: before the first round, `failed`: in the middle; `why` says more of both.

    `seconds` of processor time were spent on it, as far as that is known.
    """

    state: Literal["finished", "diverged", "refused", "failed", "stopped"]
    why: str = ""
    seconds: float = 0.0


Event = tuple[WorkItem, "int | Ended"]
"""Some work and the rounds it has done, or how it ended."""


class Executor(ABC):
    """Whoever works jobs off."""

    def __init__(self) -> None:
        self._waiting: deque[WorkItem] = deque()
        self._stopping = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def submit(self, job: WorkItem) -> None:
        """Take a job; it begins when its turn comes."""
        self._waiting.append(job)

    @abstractmethod
    def events(self) -> Iterator[Event | None]:
        """What happens until all jobs have ended; None from time to time, so that the caller can look around."""

    def stop(self) -> None:
        """Begin no more jobs; those under way are asked to keep a checkpoint and end."""
        self._stopping = True
        self._waiting.clear()


@dataclass
class LastSet:
    """The set that a process has read last, since jobs of a sweep mostly read the same one: kept for as long
    as its settings are asked for and its file stays as it was. `ray`: where the cluster is whose workers compute."""

    known: Any = None
    dataset: Dataset | None = None
    ray: str | None = None

    def load(self, config: Config, folder: Path | None) -> Dataset:
        """As `load` of a run; people's own files are read every time."""
        from crosshatch.data.sources import named_file  # late: whoever hands out jobs need not wait
        from crosshatch.runs.identity.run_data import load

        if config.data.name is None:
            return load(config, folder)
        path = named_file(config.data.name, folder)
        written = None if path is None else path.stat()
        stamp = None if written is None else (written.st_mtime_ns, written.st_size)
        asked = (config.data, config.federation.silos, path, stamp)  # silos may ask what no named set has
        if self.dataset is None or self.known != asked:
            self.known, self.dataset = None, None  # before another is read: two may be too large
            self.dataset = load(config, folder)
            self.known = asked
        return self.dataset


def run_job(work: WorkItem, tell: Callable[[int], None] = lambda _: None, last: LastSet | None = None) -> Ended:
    """Do it here, and say what time it took; `tell` gets the rounds done, `last` has the data that were read before."""
    began = time.process_time()
    return replace(work.run(tell, last or LastSet()), seconds=time.process_time() - began)


def _train(job: Job, teller: _Teller, last: LastSet) -> Ended:
    from crosshatch.runs.train import train  # late: whoever hands out jobs need not wait for torch

    config = decode_config(started_from(tomllib.loads(job.config), job.home))
    folder = None if job.folder is None else Path(job.folder)
    patient_until, ray = time.monotonic() + BUSY_SECONDS, last.ray if config.run.workers else None
    while True:
        try:
            outcome = train(
                config, out=Path(job.out), folder=folder, resume=True, watcher=teller, load=last.load, ray=ray
            )
            return Ended("finished" if outcome.finished else "stopped")
        except BusyError:
            if time.monotonic() > patient_until:
                raise
            time.sleep(0.2)


class _Teller(Watcher):
    """Passes on the rounds done, a few times per second at most; what else happens is in the run directory."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._told = 0.0
        self.began = False

    def begin(self, prepared: Prepared, path: Path) -> None:  # noqa: ARG002 - as a watcher has it
        """What goes wrong from now on is no mistake of the config."""
        self.began = True

    def advance(self, round: int) -> None:
        now = time.monotonic()
        if now - self._told > 0.25:
            self._told = now
            self._tell(round)
