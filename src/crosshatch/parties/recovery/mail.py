"""A party's messages, kept so that after a crash nobody has to agree on anything: no clock, no thread, no socket.

A state *of round s* is what a party holds when round s begins; `stored` is the round of the newest one that is safe on
disk. Every frame says its sender's `stored`, and what was sent in rounds before a peer's is forgotten: the peer will
never ask for it again. Whatever else was sent is part of the sender's own state, and is sent again over every new
connection; the receiver drops by key what it knows. `docs/recovery.md` says why this is enough.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import msgspec

from crosshatch.errors import MessageError, RunError
from crosshatch.parties.line import Key, Name
from crosshatch.parties.recovery.greeting import Greeting, read_greeting, require_agreed

BEGIN_AGAIN = "have all parties begin again at a round whose state every one has kept: --resume --from ROUND"
"""What can be done about a state that is lost."""


class FrameKind(IntEnum):
    """What a frame is: the first one of a connection, a message, news of a stored state, that the run cannot go on, or
    that it is over for its sender."""

    GREETING = 0
    MESSAGE = 1
    STORED = 2
    STOP = 3
    OVER = 4


class Frame(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """What travels: `message` is the message, what a greeting says all parties have in common, or why one stops."""

    kind: FrameKind
    stored: int
    key: Key = (0, "", 0)
    message: bytes = b""


@dataclass
class Mail:
    """What one party sent, what arrived for it, and what its peers have stored.

    `transmit(peer, frame)` hands a frame to the connection and may lose it, so long as the next connection is told of
    by `connected`. Parties that are peers have what is `agreed` of their greetings in common. `rounds` is how many
    rounds of messages are kept for a peer at most, one more than the longest interval between anybody's states.

    Who keeps nothing from round to round `follows` its hub: it begins at the round that the hub has stored, after a
    crash and whenever it waits for something of an earlier one. So a hub keeps for its `followers` what it sent since
    its own stored state, and stores nothing of it.
    """

    me: Name
    peers: tuple[Name, ...]
    transmit: Callable[[Name, Frame], None]
    greeting: Greeting = field(default_factory=lambda: Greeting({}, {}))
    rounds: int = 11
    stored: int = 0
    sent: Mapping[Name, Mapping[Key, bytes]] = field(default_factory=dict)  # as the state has it
    heard: dict[Name, int] = field(default_factory=dict)  # what each peer has stored, as it said
    follows: Name | None = None
    followers: frozenset[Name] = frozenset()
    over: bool = field(init=False, default=False)  # the hub that it follows is at the end
    _out: dict[Name, dict[Key, bytes]] = field(init=False)
    _inbox: dict[Name, dict[Key, bytes]] = field(init=False)
    _known: dict[Name, dict[int, dict[Key, int]]] = field(init=False)  # by round, hashes of all that arrived
    _greeted: set[Name] = field(init=False, default_factory=set)
    _said: dict[Name, int] = field(init=False)  # the `stored` that was last told
    _why: bytes | None = field(init=False, default=None)  # it stopped
    _ended: bool = field(init=False, default=False)
    _behind: int = field(init=False)  # messages of earlier rounds are not wanted any more

    def __post_init__(self) -> None:
        self._out = {peer: dict(self.sent.get(peer, {})) for peer in self.peers}
        self._inbox, self._known = {peer: {} for peer in self.peers}, {peer: {} for peer in self.peers}
        self.heard = dict.fromkeys(self.peers, 0) | self.heard
        self._said = dict.fromkeys(self.peers, 0)
        self._behind = self.stored
        if self.follows not in self.peers:
            self.follows = None  # it has no samples, and hears from nobody

    def has_room(self, to: Name, round: int) -> bool:
        """Whether a message of this round may be sent: if not, the peer has to store first, and has all it needs."""
        oldest = next(iter(self._out[to]), None)  # a party's rounds follow each other, so do its messages
        return oldest is None or oldest[0] >= round - self.rounds

    def rounds_kept(self, peer: Name) -> int:
        """Of how many rounds messages are kept for a peer; never more than `rounds` and one."""
        return len({key[0] for key in self._out[peer]})

    def send(self, to: Name, key: Key, message: bytes) -> None:
        """Keep a message until its receiver has stored a later round, and hand it over if there is a connection."""
        if key[0] < self.heard[to] and to not in self.followers:
            return  # a round that is run again: the receiver has it behind it
        if self._out[to].get(key, message) != message:
            raise RunError(
                f"{self.me} would send {to} other bytes for {_say(key)} than before: after a crash, go on with "
                "the same versions, number of threads and kind of processor"
            )
        if key not in self._out[to]:
            self._out[to][key] = message
            self._hand_over(to, Frame(FrameKind.MESSAGE, self.stored, key, message))

    def take(self, sender: Name, key: Key) -> bytes | None:
        """What arrived under this key, or None; it is handed out once."""
        return self._inbox[sender].pop(key, None)

    def connected(self, peer: Name) -> None:
        """A new connection: greet, and wait for the peer's greeting before anything else."""
        self._greeted.discard(peer)
        self._hand_over(peer, Frame(FrameKind.GREETING, self.stored, message=self.greeting.encode()))

    def arrived(self, peer: Name, frame: Frame) -> None:
        """A frame came in. What must end the run is an error that names the peer."""
        if (frame.kind == FrameKind.GREETING) == (peer in self._greeted):
            return  # one greeting per connection and nothing before it: the rest belongs to an earlier one
        if frame.kind == FrameKind.GREETING:
            self._greeted.add(peer)  # so that it is told if it is refused
            self._check_greeting(peer, frame)
        if frame.kind == FrameKind.STOP and self._why is None:
            raise MessageError(f"{peer} has stopped the run: {frame.message.decode(errors='replace')}")
        if frame.stored > self.heard[peer]:
            self.heard[peer] = frame.stored
            if peer not in self.followers:
                self._forget_sent(peer, frame.stored)
            if peer == self.follows:  # nobody needs what would be said in these rounds
                self._forget_arrived(frame.stored)
        self.over = self.over or (frame.kind == FrameKind.OVER and peer == self.follows)
        if frame.kind == FrameKind.GREETING:
            for key, message in self._out[peer].items():
                self._hand_over(peer, Frame(FrameKind.MESSAGE, self.stored, key, message))
            if self._ended:
                self._hand_over(peer, Frame(FrameKind.OVER, self.stored))
            elif self._said[peer] < self.stored:  # since its own greeting, and no message has told it
                self._hand_over(peer, Frame(FrameKind.STORED, self.stored))
            if self._why is not None:
                self._hand_over(peer, Frame(FrameKind.STOP, self.stored, message=self._why))
        if frame.kind == FrameKind.MESSAGE and frame.key[0] >= self._behind:
            self._put(peer, frame)

    def has_stored(self, round: int) -> None:
        """The state of this round, with `kept` as it was when the round began, is on disk."""
        self.stored = round
        self._forget_arrived(round)
        for peer in self.peers:
            if peer in self.followers:
                self._forget_sent(peer, round)
            if self._said[peer] < round - 1:  # no message tells it, and it would keep too much
                self._hand_over(peer, Frame(FrameKind.STORED, round))

    def is_left_behind(self, round: int) -> bool:
        """Whether the hub that it follows will send nothing of this round any more, if it is not there."""
        hub = self.follows
        return hub is not None and (self.heard[hub] > round or (self.over and self.heard[hub] == round))

    def is_past(self, peer: Name, round: int) -> bool:
        """Whether a peer is known to be in a later round: it has stored one, or sent a message of one."""
        return self.heard[peer] > round or any(r > round for r in self._known[peer])

    def kept(self) -> dict[Name, dict[Key, bytes]]:
        """What is to be stored with the party's state: all that may have to be sent again."""
        return {peer: dict(mine) for peer, mine in self._out.items() if peer not in self.followers}

    def say_stored(self, *, over: bool = False) -> None:
        """Tell everybody, when no message does, at a stop or where the run is over."""
        self._ended = over
        for peer in self.peers:
            self._hand_over(peer, Frame(FrameKind.OVER if over else FrameKind.STORED, self.stored))

    def stop(self, why: str) -> None:
        """Tell everybody that the run cannot go on, those who greet later too."""
        self._why = why.encode()
        for peer in self.peers:
            self._hand_over(peer, Frame(FrameKind.STOP, self.stored, message=self._why))

    @property
    def has_greeted_all(self) -> bool:
        """Whether there is a connection to every peer, on which it was told all that there is to tell."""
        return self._greeted.issuperset(self.peers)

    def everybody_has(self, round: int) -> bool:
        """Whether all peers said that they have stored this round."""
        return all(theirs >= round for theirs in self.heard.values())

    def _forget_sent(self, peer: Name, round: int) -> None:
        self._out[peer] = {key: one for key, one in self._out[peer].items() if key[0] >= round}

    def _forget_arrived(self, round: int) -> None:
        self._behind = round
        for peer in self.peers:
            self._inbox[peer] = {key: one for key, one in self._inbox[peer].items() if key[0] >= round}
            self._known[peer] = {r: one for r, one in self._known[peer].items() if r >= round}

    def _hand_over(self, peer: Name, frame: Frame) -> None:
        if peer in self._greeted or frame.kind == FrameKind.GREETING:
            self._said[peer] = frame.stored
            self.transmit(peer, frame)

    def _check_greeting(self, peer: Name, frame: Frame) -> None:
        theirs = read_greeting(frame.message, peer)
        require_agreed(self.greeting.agreed, theirs.agreed, self.me, peer)
        if peer in self.followers:
            self.heard[peer] = frame.stored
        elif frame.stored < self.heard[peer]:
            raise MessageError(
                f"{peer} begins at round {frame.stored}, but had stored round {self.heard[peer]}: its state is gone: "
                f"restore it, or {BEGIN_AGAIN}"
            )

    def _put(self, peer: Name, frame: Frame) -> None:
        # A keyed hash of this process, four times as fast as a digest: a repeat is compared with it and never used.
        known, digest = self._known[peer].setdefault(frame.key[0], {}), hash(frame.message)
        if frame.key not in known:
            known[frame.key], self._inbox[peer][frame.key] = digest, frame.message
            if len(self._known[peer]) > self.rounds + 1:
                raise MessageError(f"{peer} is more than {self.rounds} rounds ahead of what {self.me} has stored")
        elif known[frame.key] != digest:
            raise MessageError(f"{peer} sent other bytes for {_say(frame.key)} than before: no replay of the same run")


def _say(key: Key) -> str:
    return f"'{key[1]}' of round {key[0]}, use {key[2]},"
