"""Counts messages and bytes: per kind of link and direction, and per exchange.

Who counts: `simulator/accounting/links.py` (on a graph `agent_links.py`, of branches `branch_accounts.py`) for messages
that are simulated, and `parties/post.py` for those that parties send; a hub counts there for clients that keep nothing.
Those of a launched run are added up by `total` in `parties/seeing_all.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Meter:
    """Running totals. `links` and `exchanges` map a name to `[bytes, messages]`.

    >>> meter = Meter()
    >>> meter.count("client-hub up", "average", messages=10, size=4000)
    >>> meter.bytes, meter.messages, meter.links
    (4000, 10, {'client-hub up': [4000, 10]})
    """

    links: dict[str, list[int]] = field(default_factory=dict)
    exchanges: dict[str, list[int]] = field(default_factory=dict)

    def count(self, link: str, exchange: str, *, messages: int, size: int) -> None:
        self.add([(link, exchange, messages, size)])

    def add(self, counted: Iterable[tuple[str, str, int, int]]) -> None:
        """The same for several: link, exchange, messages and bytes of each."""
        for link, exchange, messages, size in counted:
            for totals, name in ((self.links, link), (self.exchanges, exchange)):
                entry = totals.setdefault(name, [0, 0])
                entry[0] += size
                entry[1] += messages

    @property
    def bytes(self) -> int:
        return sum(entry[0] for entry in self.links.values())

    @property
    def messages(self) -> int:
        return sum(entry[1] for entry in self.links.values())

    def snapshot(self) -> dict[str, dict[str, list[int]]]:
        return {
            "links": {name: list(entry) for name, entry in self.links.items()},
            "exchanges": {name: list(entry) for name, entry in self.exchanges.items()},
        }

    def load(self, snapshot: dict[str, dict[str, list[int]]]) -> None:
        self.links = {name: list(entry) for name, entry in snapshot["links"].items()}
        self.exchanges = {name: list(entry) for name, entry in snapshot["exchanges"].items()}
