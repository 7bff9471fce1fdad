"""What a user should know of the data: collected where it is noticed, printed by whoever talks to the user."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

GRAVE, DOUBTFUL, CHOSEN, PLAIN = 4, 3, 2, 1
"""Weights: results would mislead; perhaps not as it was meant; one of several ways was chosen; worth knowing."""


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


def most_important(notes: Iterable[Note], count: int = 3) -> list[str]:
    """The heaviest notes in lines that say what they are, and how many more there are."""
    ordered = by_weight(notes)
    lines = [f"{'warning' if note.is_warning else 'note'}: {note}" for note in ordered[:count]]
    more = len(ordered) - count
    return [*lines, f"{more} more such lines: see them by `crosshatch check`"] if more > 0 else lines


def by_weight(notes: Iterable[Note]) -> list[Note]:
    """Each once, the heaviest first, and otherwise in the order they were noticed."""
    return sorted(dict.fromkeys(notes), key=lambda note: -note.weight)


def listed(names: Collection[str], mark: str = "'") -> str:
    shown = ", ".join(f"{mark}{name}{mark}" for name in list(names)[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def counted(count: int, thing: str) -> str:
    """So many things.

    >>> counted(1, "empty line"), counted(1200, "row")
    ('1 empty line', '1,200 rows')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def times(count: int) -> str:
    """How often, in words.

    >>> times(1), times(3)
    ('once', '3 times')
    """
    return "once" if count == 1 else f"{count:,} times"
