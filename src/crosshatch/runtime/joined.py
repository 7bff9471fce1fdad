"""A party's line over streams: the text runs in a thread of its own, mail and streams in the event loop.

How long it waits for a peer that says nothing, and when it gives up, is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from crosshatch.errors import CrosshatchError, RunError
from crosshatch.parties.line import Key, LeftBehind, Name
from crosshatch.parties.recovery.mail import Frame, Mail
from crosshatch.runtime.complaints import Complaints

if TYPE_CHECKING:
    from collections.abc import Mapping

_Found = TypeVar("_Found")
_SAY_AFTER = 5.0  # seconds of waiting before anything is said
_STARTING = 120.0  # seconds that are waited at least in the round that a party begins with, when others may be starting


class JoinedLine:
    """`send` and `recv` for one text, around its mail; whatever ends the run is raised where the text waits.

    `wait` is how many seconds at most a message is waited for. Texts of one process share a `turn`: who computes holds
    it, who waits lets another compute.
    """

    def __init__(self, mail: Mail, complaints: Complaints, *, wait: float = 600.0, turn: Lock | None = None) -> None:
        self.mail, self._complaints, self._wait = mail, complaints, wait
        self._turn = turn or Lock()
        self._news = Condition()
        self._error: CrosshatchError | None = None
        self._first = mail.stored
        self.waits_for: tuple[Name, Key] | None = None
        self.waits_since = 0.0  # monotonic seconds

    def send(self, to: Name, key: Key, message: bytes) -> None:
        """Keep it and hand it over; waits while the receiver has not stored for so long that no more is kept for it."""

        def handed_over() -> bool | None:
            if not self.mail.has_room(to, key[0]):
                return None
            self.mail.send(to, key, message)
            return True

        self._until(handed_over, to, key)

    def recv(self, sender: Name, key: Key) -> bytes:
        """What that party sent under that key, once it is there."""

        def arrived() -> bytes | None:
            found = self.mail.take(sender, key)
            if found is None and self.mail.is_left_behind(key[0]):
                raise LeftBehind
            return found

        return self._until(arrived, sender, key)

    def connected(self, peer: Name) -> None:
        with self._news:
            self.mail.connected(peer)

    def arrived(self, peer: Name, frame: Frame) -> None:
        with self._news:
            self.mail.arrived(peer, frame)
            if self.waits_for is None or self.waits_for[0] == peer:
                self._news.notify_all()

    def has_stored(self, round: int) -> None:
        with self._news:
            self.mail.has_stored(round)
            self._news.notify_all()

    def kept(self) -> tuple[Mapping[Name, Mapping[Key, bytes]], Mapping[Name, int]]:
        """What is stored with the party's state: what may have to be sent again, and what peers have stored."""
        with self._news:
            return self.mail.kept(), dict(self.mail.heard)

    def fail(self, error: CrosshatchError) -> None:
        """The run cannot go on: peers are told, and the text where it waits next."""
        with self._news:
            if self._error is None:
                self._error = error
                self.mail.stop(str(error))
            self._news.notify_all()

    def finish(self, round: int, *, over: bool) -> None:
        """The last state is stored: wait until everybody's is, so that nobody misses a message, but not for ever.

        Who hears meanwhile that the others cannot come to their end says so. `over`: there is nothing to resume.
        """
        with self._news:
            self.mail.say_stored(over=over)
            self._news.wait_for(lambda: self.mail.everybody_has(round) or self._error is not None, self._wait)
            if self._error is not None and not self.mail.everybody_has(round):
                raise self._error

    @property
    def owes_a_word(self) -> bool:
        """Whether the run cannot go on, and some peers have not been told."""
        with self._news:
            return self._error is not None and not self.mail.has_greeted_all

    def _until(self, ready: Callable[[], _Found | None], peer: Name, key: Key) -> _Found:
        with self._news:
            if self._error is None and (found := ready()) is not None:
                return found
        computing = self._turn.locked()
        if computing:
            self._turn.release()
        try:
            with self._news:
                return self._wait_until(ready, peer, key)
        finally:
            self.waits_for = None
            if computing:
                self._turn.acquire()

    def _wait_until(self, ready: Callable[[], _Found | None], peer: Name, key: Key) -> _Found:
        began, (round, exchange, use) = monotonic(), key
        allowed = max(self._wait, _STARTING) if round == self._first else self._wait
        self.waits_for, self.waits_since = (peer, key), began
        while True:
            if self._error is not None:
                raise self._error
            found = ready()
            if found is not None:
                return found
            waited = monotonic() - began
            if waited >= allowed:
                raise RunError(f"{self.mail.me} waited {waited:.0f} s for '{exchange}' of round {round} from {peer}")
            if waited >= _SAY_AFTER and self.mail.is_past(peer, round):
                what = f"is past round {round} and has not sent '{exchange}' (use {use})"
                self._complaints.add(peer, f"{what}: has it the same text and settings?")
            self._news.wait(min(_SAY_AFTER, allowed - waited))
