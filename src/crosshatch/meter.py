"""Counts messages and bytes: per kind of link and direction, and per exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Meter:
    """Running totals. `links` and `exchanges` map a name to `[bytes, messages]`.

    >>> meter = Meter()
    >>> meter.count("client-hub up", "average", messages=10, size=4000)
    >>> meter.bytes, meter.messages, meter.links
    (4000, 10, {'client-hub up': [4000, 10]})
    """

    _links: dict[str, list[int]] = field(default_factory=dict)
    _exchanges: dict[str, list[int]] = field(default_factory=dict)
    _first: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def settle_first(self, what: Callable[[], None]) -> None:
        """Something to be called before anybody reads the totals."""
        self._first.append(what)

    @property
    def links(self) -> dict[str, list[int]]:
        """By kind of link and direction."""
        self._settle()
        return self._links

    @property
    def exchanges(self) -> dict[str, list[int]]:
        """By exchange."""
        self._settle()
        return self._exchanges

    def __getstate__(self) -> dict[str, object]:
        """A copy has the totals of everything that happened before."""
        self._settle()
        return vars(self).copy()

    def _settle(self) -> None:
        for what in self._first:
            what()

    def count(self, link: str, exchange: str, *, messages: int, size: int) -> None:
        """Add `messages` messages of `size` bytes together."""
        for totals, name in ((self._links, link), (self._exchanges, exchange)):
            entry = totals.setdefault(name, [0, 0])
            entry[0] += size
            entry[1] += messages

    def __eq__(self, other: object) -> bool:
        """Whether the totals are equal."""
        return isinstance(other, Meter) and self.snapshot() == other.snapshot()

    @property
    def bytes(self) -> int:
        """All bytes on all links."""
        return sum(entry[0] for entry in self.links.values())

    @property
    def messages(self) -> int:
        """All messages on all links."""
        return sum(entry[1] for entry in self.links.values())

    def snapshot(self) -> dict[str, dict[str, list[int]]]:
        """The totals as plain data, for a checkpoint."""
        return {
            "links": {name: list(entry) for name, entry in self.links.items()},
            "exchanges": {name: list(entry) for name, entry in self.exchanges.items()},
        }

    def load(self, snapshot: dict[str, dict[str, list[int]]]) -> None:
        """Go on from a snapshot's totals."""
        self._settle()
        self._links = {name: list(entry) for name, entry in snapshot["links"].items()}
        self._exchanges = {name: list(entry) for name, entry in snapshot["exchanges"].items()}
