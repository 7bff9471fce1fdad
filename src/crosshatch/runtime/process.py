"""One party in a process of its own, or several (a hub and its client that are one party, the clients of one machine).

Every party's text runs in a thread, one computing at a time; streams and mail live in one event loop. A state is
written beside the work, at most once per second; after a crash a party goes on from the newest one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from crosshatch.errors import CrosshatchError, RunError, one_line
from crosshatch.parties.due import longest_of
from crosshatch.parties.line import Key, Name
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.kinds import KINDS
from crosshatch.parties.recovery.mail import Frame, Mail
from crosshatch.parties.recovery.packed_state import StoredState, pack, unpack
from crosshatch.private_randomness import PrivateSeed
from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.joined import JoinedLine
from crosshatch.runtime.store import Store
from crosshatch.runtime.streams import Streams

_MOST = 200  # rounds between two states of a party at most, however fast they are
_HOST = "127.0.0.1"
_TURN = Lock()  # modules and torch's generator are shared by all texts of an interpreter: one computes at a time


@dataclass(frozen=True)
class Seat:
    """A party in this process: who it is, where its state is, who its peers are and how they come together.

    `peers` has the certificates of those in other processes, `inside` the names of those in this one.
    """

    party: Party
    me: Identity
    folder: Path
    peers: Mapping[Name, bytes] = field(default_factory=dict)
    inside: Sequence[Name] = ()
    dials: Mapping[Name, str] = field(default_factory=dict)  # addresses
    port: int | None = None  # where it lets others in; None: it does not


@dataclass(frozen=True)
class Course:
    """What all parties of a run have in common. `agreed` is a digest of all that must be the same everywhere."""

    run: str
    agreed: bytes
    rounds: int
    longest: Callable[[Key], int]  # bytes of a message, of exchanges of which parties do not know it better
    keep: frozenset[int] = frozenset()  # rounds whose states stay when newer ones take their place
    wait: float = 600.0  # seconds that a party waits for another
    store_seconds: float = 1.0


class Process:
    """Runs the parties of some seats to the end of the last round."""

    def __init__(self, seats: Sequence[Seat], course: Course, say: Callable[[str], object]) -> None:
        self.course, self.say = course, say
        self.turn = _TURN
        self.complaints = Complaints(say)
        self._loop = asyncio.get_running_loop()
        self.lives = {seat.party.name: _Life(seat, self) for seat in seats}

    async def run(self) -> None:
        """Serve, dial, compute; the first error of any party is raised when all have ended."""
        for life in self.lives.values():
            await life.join()
        for name, life in self.lives.items():
            for other in life.seat.inside:
                if name < other:
                    self.lives[other].line.connected(name)
                    life.line.connected(other)
        with ThreadPoolExecutor(len(self.lives), thread_name_prefix="text") as threads:
            working = [self._loop.run_in_executor(threads, life.live) for life in self.lives.values()]
            ended = await asyncio.gather(*working, return_exceptions=True)
        await asyncio.gather(*(life.close() for life in self.lives.values()))
        for error in ended:
            if error is not None:
                raise error

    def pass_inside(self, sender: Name, to: Name, frame: Frame) -> None:
        """A frame between two parties of this process; from any thread."""
        self._loop.call_soon_threadsafe(self.lives[to].take, sender, frame)


class _Life:
    """A party from its start, from the state it has on disk, to its end."""

    def __init__(self, seat: Seat, process: Process) -> None:
        self.seat, self.process, self.course = seat, process, process.course
        self.party, self.name = seat.party, seat.party.name
        self.store = Store(seat.folder, self.course.store_seconds)
        begun = self._begun()
        self.secret = begun.secret
        self.party.load(begun.value)
        mail = Mail(
            self.name, (*seat.peers, *seat.inside), self._transmit, agreed=self.course.agreed, rounds=_MOST + 1,
            stored=begun.round, sent=begun.sent, heard=dict(begun.heard),
        )  # fmt: skip
        self.line = JoinedLine(mail, process.complaints, wait=self.course.wait, turn=process.turn)
        self.party.join(self.line)
        self.streams = Streams(
            seat.me, Peers(seat.peers), self.line.connected, self.line.arrived, self.line.fail,
            longest_of(self.party, self.course.longest), process.complaints,
        )  # fmt: skip

    def _begun(self) -> StoredState:
        written = self.store.read()
        if written is not None:
            return unpack(written, KINDS, run=self.course.run, party=self.name)
        # The secret is stored before anything that depends on it is sent.
        first = StoredState(self.course.run, self.name, 0, self.party.state(), secret=PrivateSeed.fresh("").secret)
        self.store.begin(pack(first, KINDS), lambda _: None, 0)
        self.store.finish()
        return first

    async def join(self) -> None:
        if self.seat.port is not None:
            await self.streams.serve(_HOST, self.seat.port)
        for peer, address in self.seat.dials.items():
            self.streams.dial(peer, address)

    async def close(self) -> None:
        await self.streams.close()
        self.store.close()

    def take(self, sender: Name, frame: Frame) -> None:
        try:
            self.line.arrived(sender, frame)
        except CrosshatchError as error:
            self.line.fail(error)

    def _transmit(self, peer: Name, frame: Frame) -> None:
        if peer in self.seat.peers:
            self.streams.transmit(peer, frame)
        else:
            self.process.pass_inside(self.name, peer, frame)

    def live(self) -> None:
        """The text's rounds, in a thread; whatever ends them is told to the peers."""
        try:
            with self.process.turn:
                while self.party.round < self.course.rounds:
                    self.party.run_round()
                    self._store()
                self.store.finish()
            self.line.finish(self.course.rounds)
        except CrosshatchError as error:
            self.line.fail(error)
            raise
        except Exception as error:
            self.line.fail(RunError(f"{self.name} broke: {one_line(error)}"))
            raise

    def _store(self) -> None:
        round = self.party.round
        keep, last = round in self.course.keep, round == self.course.rounds
        if not (keep or last or self.store.due() or round - self.line.mail.stored >= _MOST):
            return
        kept, heard = self.line.kept()
        state = StoredState(self.course.run, self.name, round, self.party.state(), kept, heard, self.secret)
        self.store.begin(pack(state, KINDS), self.line.has_stored, round, keep=keep or last)
