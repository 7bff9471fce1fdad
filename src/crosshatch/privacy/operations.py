"""How many operations on ciphertexts something takes, and how long each of them lasts on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from crosshatch.errors import ConfigError


@dataclass(frozen=True)
class OperationSeconds:
    """Table [privacy.seconds]: how long operations last, all cores of a party at work.

    `encrypt`: a number. `multiply`: two ciphertexts, as in every sum and product. `pack`: moving a number to its slot.
    `mask`: hiding a ciphertext that goes back to the key's owner. `decrypt`: a ciphertext.
    """

    encrypt: float = 0.0
    multiply: float = 0.0
    pack: float = 0.0
    mask: float = 0.0
    decrypt: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what is no time."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value < float("inf"):
                raise ConfigError(f"privacy.seconds.{field.name} = {value}: must be a finite number of at least 0")

    def of(self, counts: Mapping[str, int]) -> float:
        """How long so many operations last, by name.

        >>> OperationSeconds(encrypt=0.5, mask=2.0).of({"encrypt": 3, "mask": 1})
        3.5
        """
        return float(sum(getattr(self, name) * count for name, count in counts.items()))


def side_by_side(tasks: Sequence[float], threads: int) -> float:
    """How long tasks of so many seconds take that threads pick up one after the other.

    >>> side_by_side([3.0, 1.0, 1.5], threads=2)
    3.0
    """
    busy = [0.0] * threads
    for seconds in tasks:
        busy[busy.index(min(busy))] += seconds
    return max(busy)
