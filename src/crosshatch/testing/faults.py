"""What may go wrong in a world of virtual time, how long things take there, and what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from crosshatch.parties.line import Key, Name


@dataclass(frozen=True)
class Faults:
    """How often what goes wrong, per occasion. By default nothing does."""

    crash: float = 0.0  # at each send, receive and write
    crashes: int = 0  # so many in all
    crash_at: int | None = None  # besides, at the occasion with this number
    everybody: float = 0.0  # of the crashes: all at once
    late: float = 0.5  # of those at a send or receive: after a while, when what was sent has arrived
    cut: float = 0.0  # per frame
    repeat: float = 0.0  # per frame
    slow: float = 1.0  # a frame in twenty takes so many times as long

    @classmethod
    def drawn(cls, random: Random) -> Faults:
        """Rates for one seed: from a world with few crashes to one in which hardly anything works."""
        return cls(
            crash=random.choice((0.002, 0.01, 0.03)),
            crashes=random.choice((2, 6, 15)),
            everybody=0.2,
            cut=random.choice((0.0, 0.01, 0.05)),
            repeat=random.choice((0.0, 0.1)),
            slow=random.choice((1.0, 5.0, 30.0)),
        )


NO_FAULTS = Faults()


Times = Callable[[Name, Name, Key, bytes], float]
"""How long a message is under way, where nothing goes wrong and time is what is asked for."""


@dataclass
class FaultCounts:
    """How often something went wrong, and how much was kept because of it."""

    occasions: int = 0  # on which somebody might have crashed
    crashes: int = 0
    of_everybody: int = 0
    cuts: int = 0
    repeats: int = 0
    frames: int = 0
    kept: int = 0  # the most rounds of messages that anybody kept for a peer
