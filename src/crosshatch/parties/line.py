"""What joins a party to the others: it sends under a key, and asks for what another one sent under a key."""

from typing import Protocol

Name = str
"""A party: `hub-0-1` is the hub of silo 1 in group 0."""
Key = tuple[int, str, int]
"""Round, exchange (and leg), use: with sender and receiver it names one message of the run."""


class LeftBehind(Exception):  # noqa: N818 - no error: what it waits for nobody needs any more
    """Who keeps nothing from round to round waits for a message of a round that its hub has behind it."""


class Line(Protocol):
    """One party's end. Whatever carries it: what is sent arrives once, under its key, in whatever order it is asked."""

    def send(self, to: Name, key: Key, message: bytes) -> None:
        """Hand a message over. It may wait for room, never for the receiver to read it."""
        ...

    def recv(self, sender: Name, key: Key) -> bytes:
        """What that party sent under that key, once it is there; see `LeftBehind`."""
        ...
