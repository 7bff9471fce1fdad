"""One party in a process of its own, or several (a hub and its client that are one party, the clients of one machine).

Every party's text runs in a thread, one computing at a time; streams and mail live in one event loop. A state is
written beside the work, by default once per second; after a crash a party goes on from the newest one.
"""

import asyncio
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from crosshatch.errors import CrosshatchError, RunError, one_line
from crosshatch.parties.line import Key, LeftBehind, Name
from crosshatch.parties.longest_messages import longest_of
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.greeting import Greeting
from crosshatch.parties.recovery.mail import Frame, Mail
from crosshatch.parties.recovery.packed_state import StoredState, pieces
from crosshatch.runtime.beginning import Beginning
from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.joined import JoinedLine
from crosshatch.runtime.kernels import fingerprint
from crosshatch.runtime.limit import Limit
from crosshatch.runtime.store import Pace, Store
from crosshatch.runtime.streams import Streams

_HOST = "127.0.0.1"
_LAST_WORDS = 15.0  # seconds in which a party that cannot go on tells those who connect
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
    """What all parties of a run have in common. `agreed` is all that must be the same everywhere, by its name.

    `again` has the rounds at which all have begun again, by decision; `anywhere` allows a party to run a round again
    under another processor, torch or number of threads than before its crash.
    """

    run: str
    agreed: Mapping[str, str]
    rounds: int
    longest: Callable[[Key], int]  # bytes of a message, of exchanges of which parties do not know it better
    keep: frozenset[int] = frozenset()  # rounds whose states stay when newer ones take their place
    wait: float = 600.0  # seconds that a party waits for another
    pace: Pace = field(default_factory=Pace)
    again: tuple[int, ...] = ()
    anywhere: bool = False


class Process:
    """Runs the parties of some seats to the end of the last round, or to that of `limit`."""

    def __init__(self, seats: Sequence[Seat], course: Course, say: Callable[[str], object]) -> None:
        self.course, self.say = course, say
        self.turn, self.limit = _TURN, Limit(course.rounds)
        self.fingerprint = fingerprint()
        self.complaints = Complaints(say)
        self.loop = asyncio.get_running_loop()
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
            working = [self.loop.run_in_executor(threads, life.live) for life in self.lives.values()]
            ended = await asyncio.gather(*working, return_exceptions=True)
        await asyncio.gather(*(life.close() for life in self.lives.values()))
        for error in ended:
            if error is not None:
                raise error


class _Life:
    """A party from its start, from the state it has on disk, to its end."""

    def __init__(self, seat: Seat, process: Process) -> None:
        self.seat, self.process, self.course = seat, process, process.course
        self.party, self.name = seat.party, seat.party.name
        self.store = Store(seat.folder, self.course.pace)
        about, course = process.fingerprint, self.course
        begun = Beginning(course.run, about, course.again, course.anywhere).state_of(self.party, self.store)
        self.secret = begun.secret
        self.party.load(begun.value)
        process.limit.start_at(begun.round)
        agreed = {"run": course.run, "begun again": str(list(course.again)), **course.agreed}
        mail = Mail(
            self.name, (*seat.peers, *seat.inside), self._transmit, greeting=Greeting(agreed, about),
            rounds=course.pace.most + 1, stored=begun.round, sent=begun.sent, heard=dict(begun.heard),
            follows=self.party.follows, followers=self.party.role.post.followers,
        )  # fmt: skip
        self.line = JoinedLine(mail, process.complaints, wait=self.course.wait, turn=process.turn)
        self.store.failed = self.line.fail
        self.party.join(self.line)
        self.streams = Streams(
            seat.me, Peers(seat.peers), self.line.connected, self.line.arrived, self.line.fail,
            longest_of(self.party, self.course.longest), process.complaints,
        )  # fmt: skip

    async def join(self) -> None:
        if self.seat.port is not None:
            await self.streams.serve(_HOST, self.seat.port)
        for peer, address in self.seat.dials.items():
            self.streams.dial(peer, address)

    async def close(self) -> None:
        until = asyncio.get_running_loop().time() + _LAST_WORDS
        while self.line.owes_a_word and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(0.05)  # a peer that has not connected yet would wait for a message in vain
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
            self.process.loop.call_soon_threadsafe(self.process.lives[peer].take, self.name, frame)

    def live(self) -> None:
        """The text's rounds, in a thread; whatever ends them is told to the peers."""
        try:
            while not self.party.ended and self.process.limit.may_begin(self.party.round):
                with self.process.turn:
                    self._run_round()
                    self._store()
            self._store(last=True)
            self.line.finish(self.party.round, over=self.party.ended)
        except CrosshatchError as error:
            self.line.fail(error)
            raise
        except Exception as error:
            self.process.say("".join(traceback.format_exception(error)).rstrip())
            broken = RunError(f"{self.name} broke with {_what_and_where(error, self.seat.folder.parent)}")
            self.line.fail(broken)
            raise broken from error

    def _run_round(self) -> None:
        try:
            self.party.run_round()
        except LeftBehind:
            mail = self.line.mail
            assert mail.follows is not None
            self.party.catch_up(mail.heard[mail.follows], over=mail.over)

    def _store(self, *, last: bool = False) -> None:
        """Beside the work, where it is due; the last one is on disk when this returns, and nothing is sent after it."""
        round, course = self.party.round, self.course
        keep = round == course.rounds or (round in course.keep and self.party.follows is None)
        if last or (round < course.rounds and (keep or self._due(round))):
            kept, heard = self.line.kept()
            state = StoredState(
                course.run, self.name, round, self.party.state(), kept, heard, self.secret, self.process.fingerprint,
                len(course.again), clean=last,
            )  # fmt: skip
            self.store.begin(pieces(state), self.line.has_stored, round, keep=keep)
        if last:
            self.store.finish()

    def _due(self, round: int) -> bool:
        """Who keeps nothing stores at its first start and at the end.

        Who dials others stores after them: what it sent them is not stored twice then.
        """
        heard, dials = self.line.mail.heard, self.seat.dials
        told = [min(heard[peer] for peer in dials)] if dials else []
        return self.party.follows is None and self.store.due(round, *told)


def _what_and_where(error: Exception, home: Path) -> str:
    """An error's type, words and place: where there is one, a file of the user's own, which are below `home`."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next((one for one in reversed(frames) if Path(one.filename).is_relative_to(home)), frames[-1])
    return f"{type(error).__name__}: {one_line(error)} ({place.filename}, line {place.lineno})"
