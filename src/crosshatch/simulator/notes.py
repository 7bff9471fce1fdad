"""Counting and timing put off: a few dozen in a row take half as long as one by one between the products of rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_ENOUGH = 64  # notes of a dozen rounds


@dataclass
class Notes:
    """Whoever counts messages and moves clocks notes it here; it is done before anybody reads them."""

    _noted: list[Callable[[], None]] = field(default_factory=list, init=False, repr=False)

    @property
    def at_once(self) -> bool:
        """Whether nothing may wait, because somebody listens."""
        return False

    def note(self, what: Callable[[], None]) -> None:
        """Something to be done before the next reading."""
        self._noted.append(what)
        if self.at_once or len(self._noted) >= _ENOUGH:
            self.settle()

    def settle(self) -> None:
        """Do what was noted."""
        noted, self._noted = self._noted, []
        for what in noted:
            what()

    def __getstate__(self) -> dict[str, object]:
        """What was noted is about these clocks and this meter: a copy gets its results."""
        self.settle()
        return vars(self).copy()
