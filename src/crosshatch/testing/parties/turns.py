"""Parties in turn: exactly one computes, and the next goes on where it waits for a message. The same order every time.

A thread each, of the standard library, and no lock in what they compute: a turn is handed over inside `recv` alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crosshatch.errors import RunError
from crosshatch.parties.line import Key, Name

Where = tuple[Name, Name, Key]
"""Sender, receiver, key."""


class StoppedError(Exception):
    """Somebody else has failed."""


@dataclass
class Turns:
    """What is under way, who waits for what, and whose turn it is."""

    under_way: dict[Where, bytes] = field(default_factory=dict)
    _waits: dict[Name, Where] = field(default_factory=dict)
    _order: list[Name] = field(default_factory=list)
    _turn: dict[Name, threading.Lock] = field(default_factory=dict)  # open to whose turn it is
    _failed: BaseException | None = None

    def run(self, work: Mapping[Name, Callable[[], object]]) -> None:
        """Everybody's work to its end; the first failure ends all of it, and is raised here."""
        self._order, self._failed, self._waits = list(work), None, {}
        self._turn = {name: _shut() for name in work}
        self._over = _shut()
        threads = [threading.Thread(target=self._one, args=one, daemon=True) for one in work.items()]
        for thread in threads:
            thread.start()
        self._turn[self._order[0]].release()
        self._over.acquire()
        for thread in threads:
            thread.join()
        if self._failed is not None:
            self.under_way.clear()
            raise self._failed
        assert not self.under_way, f"nobody asked for {list(self.under_way)[:3]}"

    def _one(self, name: Name, work: Callable[[], object]) -> None:
        self._turn[name].acquire()
        try:
            if self._failed is None:
                work()
        except BaseException as error:  # it is raised again where the round was asked for
            self._failed = self._failed or error
            if isinstance(error, KeyboardInterrupt):
                raise
        place = self._order.index(name)
        self._order.remove(name)
        self._hand_over(place)

    def _hand_over(self, place: int) -> None:
        """The turn goes to the next, from that place of the order on, who can go on."""
        for name in (*self._order[place:], *self._order[:place]):
            if self._failed is not None or self._waits.get(name) is None or self._waits[name] in self.under_way:
                self._turn[name].release()
                return
        if not self._order:
            self._over.release()
            return
        waiting = [f"{name} waits for {self._waits[name][2]} of {self._waits[name][0]}" for name in self._order]
        self._failed = RuntimeError("nobody can go on: " + "; ".join(waiting))
        self._hand_over(place)

    def take(self, where: Where) -> bytes:
        """A message for the one whose turn it is; while it is not there the others go on."""
        name = where[1]
        while where not in self.under_way:
            self._waits[name] = where
            self._hand_over(self._order.index(name) + 1)
            self._turn[name].acquire()
            if self._failed is not None:
                raise StoppedError
            del self._waits[name]
        return self.under_way.pop(where)


def _shut() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


@dataclass(frozen=True)
class TurnLine:
    """One party's end of the line."""

    me: Name
    turns: Turns

    def send(self, to: Name, key: Key, message: bytes) -> None:
        """It is there at once."""
        where = (self.me, to, key)
        if self.turns.under_way.setdefault(where, message) != message:
            raise RunError(f"{self.me} would send {to} other bytes for '{key[1]}' of round {key[0]} than before")

    def recv(self, sender: Name, key: Key) -> bytes:
        """Others compute until it is there."""
        return self.turns.take((sender, self.me, key))
