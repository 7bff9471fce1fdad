"""A world of virtual time in which parties exchange messages: delays, repeats, cut connections and crashes by a seed.

Time is a number that jumps from event to event; one party runs at a time. A connection carries frames in order, may
repeat them, and loses all that is under way when it is cut. A party crashes before or after a send, at a receive,
before or after a write of its state, alone or with everybody, and starts again from what is on its disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from random import Random

from crosshatch.errors import CrosshatchError
from crosshatch.parties.line import Key, LeftBehind, Name
from crosshatch.parties.recovery.mail import Frame, FrameKind, Mail
from crosshatch.testing.faults import NO_FAULTS, FaultCounts, Faults, Times
from crosshatch.testing.strands import Strand, StrandEnded

_MOST_EVENTS = 2_000_000  # a run of so many has no end


class World:
    """Parties that live (and die, and live again) beside each other.

    `lives` has for each party what it does from its start to its end, given its `Station`; `mail` makes its mail anew
    at each start, from what is on its disk.
    """

    def __init__(
        self,
        lives: Mapping[Name, Callable[[Station], object]],
        peers: Mapping[Name, Sequence[Name]],
        *,
        mail: Callable[[Station, Callable[[Name, Frame], None]], Mail],
        seed: int = 0,
        faults: Faults = NO_FAULTS,
        times: Times | None = None,
    ) -> None:
        self.lives, self.peers, self.faults, self.times, self.mail = lives, peers, faults, times, mail
        self.random, self.now, self.counted = Random(f"world {seed}"), 0.0, FaultCounts()
        self.disk: dict[Name, bytes] = {}
        self.stations: dict[Name, Station] = {}
        self.results: dict[Name, object] = {}
        self.errors: dict[Name, CrosshatchError] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._connection: dict[frozenset[Name], int | None] = {}  # its number; None: there is none
        self._last: dict[tuple[Name, int], float] = {}  # when the last frame of a sender on a connection arrives
        self._doomed: list[Name] = []

    def run(self) -> None:
        """Until every party has come to its end; the first error of any of them, if there was one."""
        for name in self.lives:
            self._start(name)
        try:
            for _ in range(_MOST_EVENTS):
                if len(self.results) + len(self.errors) == len(self.lives):
                    break
                if not self._events:
                    raise AssertionError(f"all wait: {'; '.join(map(str, self.stations.values()))}")
                self.now, _, happen = heappop(self._events)
                happen()
                for name in self._doomed:
                    self._kill(name)
                self._doomed.clear()
            else:
                raise AssertionError(f"no end after {_MOST_EVENTS} events")
        finally:
            for station in self.stations.values():
                station.strand.end()
        for error in self.errors.values():
            raise error

    def at(self, delay: float, happen: Callable[[], None]) -> None:
        heappush(self._events, (self.now + delay, next(self._order), happen))

    def a_while(self, mean: float = 1.0) -> float:
        """A delay, none where times are given."""
        return 0.0 if self.times else self.random.expovariate(1 / mean)

    def cut(self, one: Name, other: Name) -> None:
        """Break a connection with all that is under way; it comes back."""
        pair = frozenset((one, other))
        if self._connection.get(pair) is not None:
            self.counted.cuts += 1
            self._connection[pair] = None
            self.at(self.a_while(3.0), lambda: self._connect(one, other))

    def is_struck(self) -> bool:
        """Whether a party crashes on this occasion."""
        faults, occasion = self.faults, self.counted.occasions
        self.counted.occasions += 1
        by_chance = self.counted.crashes < faults.crashes and self.random.random() < faults.crash
        return by_chance or occasion == faults.crash_at

    def strike(self, station: Station) -> None:
        """A party crashes, alone or with everybody; whoever has it done ends its work."""
        self._doomed = [station.name]
        if self.random.random() < self.faults.everybody:
            self.counted.of_everybody += 1
            self._doomed = list(self.stations)

    def wake(self, name: Name) -> None:
        """Let a party go on if what it waits for is there."""
        station = self.stations.get(name)
        if station is None or station.strand.over or not station.ready():
            return
        station.strand.resume()
        if not station.strand.over:
            return
        if station.strand.error is None:
            self.results[name] = station.result
        elif isinstance(station.strand.error, CrosshatchError):
            self._fail(station, station.strand.error)
        elif not isinstance(station.strand.error, StrandEnded):
            raise station.strand.error

    def _fail(self, station: Station, error: CrosshatchError) -> None:
        """A party says why it stops, and does."""
        if station.name not in self.errors:
            self.errors[station.name] = error
            self.results.pop(station.name, None)
            station.mail.stop(str(error))
            station.strand.end()

    def _start(self, name: Name) -> None:
        if name in self.stations:
            return
        self.stations[name] = station = Station(self, name)
        station.mail = self.mail(station, lambda to, frame: self._transmit(station, to, frame))
        for peer in self.peers[name]:
            self._connection[frozenset((name, peer))] = None
            self.at(self.a_while(), lambda peer=peer: self._connect(name, peer))  # type: ignore[misc]
        self.at(0.0, lambda: self.wake(name))

    def _kill(self, name: Name) -> None:
        station = self.stations.pop(name, None)
        if station is None:
            return
        self.errors.pop(name, None)
        self.counted.crashes += 1
        station.strand.end()
        for peer in self.peers[name]:
            self._connection[frozenset((name, peer))] = None
        self.results.pop(name, None)
        self.at(self.a_while(5.0), lambda: self._start(name))

    def _connect(self, one: Name, other: Name) -> None:
        pair = frozenset((one, other))
        if self._connection.get(pair) is None and pair <= self.stations.keys():
            self._connection[pair] = number = next(self._order)
            for me, peer in ((one, other), (other, one)):
                if self._connection[pair] == number:  # the first greeting may have cut it
                    self.stations[me].mail.connected(peer)

    def _transmit(self, station: Station, to: Name, frame: Frame) -> None:
        sender, pair = station.name, frozenset((station.name, to))
        number = self._connection.get(pair)
        if number is None or self.stations.get(sender) is not station:
            return
        if self.random.random() < self.faults.cut:
            self.cut(sender, to)
            return
        for repeat in range(1 + (self.random.random() < self.faults.repeat)):
            self.counted.frames += 1
            self.counted.repeats += repeat
            when = self.now + self._under_way(sender, to, frame)
            if not (repeat or self.times):  # in order, as a stream is; a repeat comes when it likes
                when = self._last[sender, number] = max(when, self._last.get((sender, number), 0.0))
            heappush(self._events, (when, next(self._order), lambda: self._deliver(sender, to, number, frame)))

    def _under_way(self, sender: Name, to: Name, frame: Frame) -> float:
        if self.times:
            message = frame.kind == FrameKind.MESSAGE
            return self.times(sender, to, frame.key, frame.message) if message else 0.0
        return self.a_while() * (self.faults.slow if self.random.random() < 0.05 else 1.0)

    def _deliver(self, sender: Name, to: Name, number: int, frame: Frame) -> None:
        station = self.stations.get(to)
        if station is None or self._connection.get(frozenset((sender, to))) != number:
            return
        try:
            station.mail.arrived(sender, frame)
        except CrosshatchError as error:
            self._fail(station, error)
        else:
            self.wake(to)


@dataclass
class Station:
    """One life of a party: its line, its disk, its share of the time."""

    world: World
    name: Name
    mail: Mail = field(init=False)
    result: object = None
    ready: Callable[[], bool] = lambda: True
    waits_for: object = None
    _writing: bool = False

    def __post_init__(self) -> None:
        self.strand = Strand(self._live)

    def _live(self) -> None:
        self.result = self.world.lives[self.name](self)

    def __str__(self) -> str:
        return f"{self.name} {'is at the end' if self.strand.over else f'waits for {self.waits_for}'}"

    def send(self, to: Name, key: Key, message: bytes) -> None:
        self._may_crash()
        self._wait(lambda: self.mail.has_room(to, key[0]), ("room", to, key))
        self.mail.send(to, key, message)
        self.world.counted.kept = max(self.world.counted.kept, self.mail.rounds_kept(to))
        self._may_crash()

    def recv(self, sender: Name, key: Key) -> bytes:
        self._may_crash()
        found: list[bytes] = []

        def is_there() -> bool:
            message = self.mail.take(sender, key)
            found.extend([] if message is None else [message])
            return message is not None or self.mail.is_left_behind(key[0])

        self._wait(is_there, (sender, key))
        if not found:
            raise LeftBehind
        return found[0]

    def store(self, round: int, state: bytes) -> None:
        """Write a state beside the work, after the one that is being written.

        Nobody may get further ahead of what it has stored than its interval: others count on it.
        """
        self.finish_storing()
        self._writing = True
        self.world.at(self.world.a_while(), lambda: self._write(round, state))

    def finish_storing(self) -> None:
        self._wait(lambda: not self._writing, "the disk")

    def spend(self, seconds: float) -> None:
        until = self.world.now + seconds
        self.world.at(seconds, lambda: self.world.wake(self.name))
        self._wait(lambda: self.world.now >= until, "its work")

    def _write(self, round: int, state: bytes) -> None:
        """Before it, nothing of the state is on disk; after it, it is and nobody was told."""
        if self.world.stations.get(self.name) is not self:
            return
        if self.world.is_struck():
            self.world.strike(self)
            return
        self.world.disk[self.name] = state
        if self.world.is_struck():
            self.world.strike(self)
            return
        self._writing = False
        self.mail.has_stored(round)
        self.world.wake(self.name)

    def _may_crash(self) -> None:
        if self.world.is_struck():
            if self.world.random.random() < self.world.faults.late:
                self.spend(self.world.a_while(3.0))
            self.world.strike(self)
            raise StrandEnded

    def _wait(self, ready: Callable[[], bool], what: object) -> None:
        if not ready():
            self.ready, self.waits_for = ready, what
            self.strand.pause()
            self.ready = lambda: True
