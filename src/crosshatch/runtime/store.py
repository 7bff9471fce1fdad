"""A party's state on disk: whole or not at all, readable by its owner alone."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, final

from crosshatch.errors import CrosshatchError, RunError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NAME, _BEGUN = "state", "begun"
_NEVER = 2**63  # a round
_MOST = 200  # rounds between two states at most, where seconds are asked for, however fast rounds are


@dataclass(frozen=True)
class Pace:
    """How often a state is written: every so many `rounds`, or, without these, every so many `seconds` at most."""

    seconds: float = 1.0
    rounds: int | None = None

    @property
    def most(self) -> int:
        """Rounds between two states at most: others keep messages for so many."""
        return self.rounds or _MOST


def write_whole(path: Path, *pieces: bytes) -> None:
    """Replace a file by these bytes, on disk when this returns; after a crash it has the old or the new ones.

    A new name, fsync, rename, fsync of the folder; mode 0600 from the first byte on.
    """
    beside = path.with_name(path.name + ".new")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # one that an earlier crash left may have another
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise RunError(
            f"cannot write {path} ({sum(map(len, pieces))} bytes): {error.strerror}: make room or give access, then "
            "resume the run"
        ) from None


@final
@dataclass
class Store:
    """The newest state of one party in its folder, written beside the work, one at a time.

    `begin` waits for the write before, so that a party never gets further ahead of its disk than its pace allows.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     store.begin([b"round ", b"3"], print, 3)
    ...     store.finish()
    ...     store.read(), store.due(4), store.copies()
    3
    (b'round 3', False, [])
    """

    folder: Path
    pace: Pace = Pace()
    clock: Callable[[], float] = monotonic  # a clock that nobody sets
    failed: Callable[[CrosshatchError], object] | None = None  # told at once of a write that failed, in another thread
    _began: float | None = field(default=None, init=False)
    _round: int = field(default=0, init=False)  # of the newest that was begun
    _writing: Future[None] | None = field(default=None, init=False)
    _thread: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    def read(self, round: int | None = None) -> bytes | None:
        """What was written last, or the copy of a round; None: nothing was."""
        try:
            return (self.folder / (_NAME if round is None else f"{_NAME}-{round}")).read_bytes()
        except FileNotFoundError:
            return None

    @property
    def begun(self) -> bool:
        """Whether a state was ever written here."""
        return (self.folder / _BEGUN).exists()

    def copies(self) -> list[int]:
        """The rounds of which copies were kept."""
        found = (path.name.removeprefix(f"{_NAME}-") for path in self.folder.glob(f"{_NAME}-*"))
        return sorted(int(number) for number in found if number.isdecimal())

    def forget_after(self, round: int) -> None:
        """Remove the copies of later rounds: all have begun again at this one."""
        for later in self.copies():
            if later > round:
                (self.folder / f"{_NAME}-{later}").unlink()

    def due(self, round: int, told: int = _NEVER) -> bool:
        """Whether a state of this round is to be written now: the last one is long enough ago.

        Where seconds are asked for, none is begun beside another that is being written, until that is `Pace.most`
        rounds ago. `told` is what others say to have stored: one later than the last state here keeps what was sent to
        them out of the next, and is waited for as long again.
        """
        if self.pace.rounds is not None or round - self._round >= self.pace.most:
            return round - self._round >= self.pace.most
        if self._writing is not None and not self._writing.done():
            return False
        seconds = self.pace.seconds if told > self._round else 2 * self.pace.seconds
        return self._began is None or self.clock() - self._began >= seconds

    def begin(self, data: Sequence[bytes], then: Callable[[int], object], round: int, *, keep: bool = False) -> None:
        """Write it beside the work, and say `then(round)` when it is on disk, in another thread.

        `keep`: a copy of this round's stays when newer ones take its place. What went wrong with the write before is
        raised here.
        """
        self.finish()
        self._began, self._round = self.clock(), round
        self._writing = self._thread.submit(self._write, data, then, round, keep)

    def finish(self) -> None:
        """Wait until nothing is being written; what went wrong is raised here."""
        if self._writing is not None:
            self._writing.result()

    def close(self) -> None:
        """Wait for what is being written, and end the thread."""
        self._thread.shutdown(wait=True)

    def _write(self, data: Sequence[bytes], then: Callable[[int], object], round: int, keep: bool) -> None:
        try:
            if keep:
                write_whole(self.folder / f"{_NAME}-{round}", *data)
            write_whole(self.folder / _NAME, *data)
            if not self.begun:
                write_whole(self.folder / _BEGUN, b"")
        except CrosshatchError as error:
            if self.failed is not None:  # the text may wait for somebody who waits for this state
                self.failed(error)
            raise
        then(round)
