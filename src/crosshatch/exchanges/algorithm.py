"""What every algorithm is: settings and the text of a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from crosshatch.schedules import Schedule
from crosshatch.topology import Topology


class Algorithm(Protocol):
    """A method, whatever it runs on; those on a graph have more settings (`TokenAlgorithm`, `DualAlgorithm`).

    >>> from crosshatch import TDCD
    >>> method: Algorithm = TDCD(local_steps=5, step_size=0.1)
    >>> str(method.topology)
    'V(5) H(5)'
    """

    @property
    def local_steps(self) -> int:
        """Q: local steps per round, or per visit of a token."""

    @property
    def step_size(self) -> Schedule | float | Literal["auto"]:
        """eta or mu: the step size of a round; "auto" where it follows from the blocks."""

    @property
    def topology(self) -> Topology:
        """The tiers it runs on, with their intervals."""

    @property
    def run_round(self) -> Callable[..., Any]:
        """`run_round(fed, blocks, r)`: the hubs' blocks after round r (or tokens, or duals, after hop r).

        It is a pure function of those before, the round number and the seed. With `remembers` declared it is
        `run_round(fed, blocks, r, memory)` and returns blocks and memory, which is `()` before the first round.
        """
