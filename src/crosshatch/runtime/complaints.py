"""What was refused and from whom: one line per kind and peer, repeats counted."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock


@dataclass
class Complaints:
    """`say` gets the first line of each kind and peer, and again with the count at every tenfold.

    >>> log = Complaints(print)
    >>> for _ in range(12):
    ...     log.add("hub-0-1", "no envelope", "b'x' is no list")
    hub-0-1: no envelope (b'x' is no list)
    hub-0-1: no envelope, 10 times so far (b'x' is no list)
    """

    say: Callable[[str], object]
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter, init=False)
    _lock: Lock = field(default_factory=Lock, init=False)

    def add(self, peer: str, kind: str, detail: str = "") -> None:
        """Note one; `kind` is the same for all that are alike."""
        with self._lock:
            self._counts[peer, kind] += 1
            count = self._counts[peer, kind]
        if str(count).rstrip("0") == "1":
            often = f", {count} times so far" if count > 1 else ""
            self.say(f"{peer}: {kind}{often}{f' ({detail})' if detail else ''}")
