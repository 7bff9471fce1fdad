"""What each party says and hears in a round, in its own order: who its peers are, and what an echo has to carry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from crosshatch.parties.line import Key, Line, Name

Said = tuple[Literal["to", "from"], Name, int]
"""A message to a peer, or from one, and its bytes."""


@dataclass
class NotedLine:
    """A line that notes what passes."""

    line: Line
    said: list[Said] = field(default_factory=list)

    def send(self, to: Name, key: Key, message: bytes) -> None:
        """Note it and hand it over."""
        self.said.append(("to", to, len(message)))
        self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        """Take it and note it."""
        message = self.line.recv(sender, key)
        self.said.append(("from", sender, len(message)))
        return message


def peers_in(said: list[Said]) -> list[Name]:
    """Everybody that a party talks to."""
    return sorted({name for _, name, _ in said})
