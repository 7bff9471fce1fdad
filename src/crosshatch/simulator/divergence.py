"""When training has diverged, by a stated rule.

The rule: at an evaluation the training loss is more than ten times the larger of two: the training loss before the
first round, and that of scores that are all zero. Either alone would stop runs that are well: one that begins with
trained blocks has a tiny loss to compare with, and weights that begin with a penalty are above what scores of zero
cost. Both are measured as the training loss is: on the same samples, as a mean or, on a graph, as a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

GROWTH = 10
"""So many times the larger loss is too much."""


@dataclass(frozen=True)
class Divergence:
    """The round at whose evaluation it was noticed, and what was noticed and what to do in a sentence."""

    round: int
    why: str


@dataclass(frozen=True)
class Growth:
    """The rule, for a run whose training loss was `first` before the first round and is `zero` for scores of zero.

    >>> rule = Growth(first=0.5, zero=0.7)
    >>> rule.notice(7.0, 4, str) is None, rule.notice(7.1, 5, str).round
    (True, 5)
    """

    first: float
    zero: float

    def notice(self, loss: float, round: int, advise: Callable[[int], str]) -> Divergence | None:
        """What is wrong with this training loss after a round, and what the advice is; None where it is well."""
        if not loss > GROWTH * max(self.first, self.zero):
            return None
        return Divergence(
            round,
            f"round {round}: training diverged, the training loss is {loss:.4g}, more than {GROWTH} times the larger "
            f"of {self.first:.4g} (before the first round) and {self.zero:.4g} (scores of zero): {advise(round)}",
        )
