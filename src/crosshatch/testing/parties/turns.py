"""Parties in turn: exactly one computes, and the next goes on where it waits for a message; always in one order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crosshatch.errors import RunError
from crosshatch.parties.line import Key, Name
from crosshatch.testing.strands import Strand

Where = tuple[Name, Name, Key]
"""Sender, receiver, key."""


@dataclass
class Turns:
    """What is under way, and who waits for what."""

    under_way: dict[Where, bytes] = field(default_factory=dict)
    pairs: set[tuple[Name, Name]] = field(default_factory=set)  # who has sent to whom
    _waits: dict[Name, Where] = field(default_factory=dict)
    _strands: dict[Name, Strand] = field(default_factory=dict)

    def run(self, work: Mapping[Name, Callable[[], object]]) -> None:
        """Everybody's work to its end; the first failure ends all of it, and is raised here."""
        self._strands, self._waits = {name: Strand(one) for name, one in work.items()}, {}
        try:
            while any(not strand.over for strand in self._strands.values()):
                if not sum(self._go_on(name) for name in work):
                    waiting = [f"{name} waits for {where[2]} of {where[0]}" for name, where in self._waits.items()]
                    raise RuntimeError("nobody can go on: " + "; ".join(waiting))
        except BaseException:
            self.under_way.clear()
            raise
        finally:
            for strand in self._strands.values():
                strand.end()
        assert not self.under_way, f"nobody asked for {list(self.under_way)[:3]}"

    def _go_on(self, name: Name) -> bool:
        """Whether it was somebody's turn, who had come to no end and waited for nothing that is not there."""
        strand = self._strands[name]
        if strand.over or (name in self._waits and self._waits[name] not in self.under_way):
            return False
        self._waits.pop(name, None)
        strand.resume()
        if strand.error is not None:
            raise strand.error
        return True

    def take(self, where: Where) -> bytes:
        """A message for the one whose turn it is; while it is not there the others go on."""
        if where not in self.under_way:
            self._waits[where[1]] = where
            self._strands[where[1]].pause()
        return self.under_way.pop(where)


@dataclass(frozen=True)
class TurnLine:
    """One party's end of the line."""

    me: Name
    turns: Turns

    def send(self, to: Name, key: Key, message: bytes) -> None:
        where = (self.me, to, key)
        self.turns.pairs.add((self.me, to))
        if self.turns.under_way.setdefault(where, message) != message:
            raise RunError(f"{self.me} would send {to} other bytes for '{key[1]}' of round {key[0]} than before")

    def recv(self, sender: Name, key: Key) -> bytes:
        return self.turns.take((sender, self.me, key))
