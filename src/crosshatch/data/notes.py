"""What a user should know of the data: collected where it is noticed, printed by whoever talks to the user."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DOUBTFUL, CHOSEN, PLAIN = 3, 2, 1
"""Weights: probably not as it was meant; one of several ways to read it was chosen; worth knowing."""


@dataclass(frozen=True)
class Note:
    """A line about a `place`, a file and its column for example; `code` names what kind of line it is.

    >>> str(Note("dropped", CHOSEN, "bank.csv", "3 of 10 rows dropped"))
    'bank.csv: 3 of 10 rows dropped'
    """

    code: str
    weight: int
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text

    @property
    def is_warning(self) -> bool:
        """Whether something is probably not as it was meant."""
        return self.weight >= DOUBTFUL


def by_weight(notes: Iterable[Note]) -> list[Note]:
    """Each once, the heaviest first, and otherwise in the order they were noticed."""
    return sorted(dict.fromkeys(notes), key=lambda note: -note.weight)
