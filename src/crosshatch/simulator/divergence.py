"""When training has diverged, by a stated rule, and advice that fits the case.

The rule: at an evaluation the training loss is more than ten times the larger of two: the training loss before the
first round, and that of scores that are all zero. Either alone would stop runs that are well: one that begins with
trained blocks has a tiny loss to compare with, and weights that begin with a penalty are above what scores of zero
cost. Both are measured as the training loss is: on the same samples, as a mean or, on a graph, as a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm, DualAlgorithm, RememberingAlgorithm, TokenAlgorithm, declared, on_silos
from crosshatch.schedules import rate
from crosshatch.task.task import Task

GROWTH = 10
"""So many times the larger loss is too much."""
CROWD = 3
"""So many silos that descend at the same time overshoot together, where each alone would not."""


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


def advise(
    algorithm: Algorithm | RememberingAlgorithm | TokenAlgorithm | DualAlgorithm,
    data: FederatedData,
    task: Task,
    *,
    round: int,
) -> str:
    """What to change after training diverged in this round (from 1 on)."""
    step, steps, silos = algorithm.step_size, algorithm.local_steps, len(data.silos)
    now = step if isinstance(step, str) else f"{rate(step, round - 1):g}"
    lower = f"lower algorithm.step_size (now {now})"
    l2 = task.regulariser.l2
    # beyond 2 over l2 its gradient alone throws the weights further out at every step
    if not isinstance(step, str) and l2 * rate(step, round - 1) > 2:
        return f"{lower} or model.l2 (now {l2:g})"
    known, both = declared(algorithm), f"{lower} or algorithm.local_steps"
    if steps == 1 or known.central:
        return lower
    if not on_silos(algorithm) or silos == 1:
        return both
    held = data.label_silo is not None
    abcd = "" if held and task.head is not None else "use algorithm abcd, or "  # a head's derivatives cannot go on
    if held and not known.asks_each_step and not known.continues_derivatives:
        return (
            f"labels are held by '{data.label_silo}' and its derivatives stay frozen for {steps} local steps: "
            f"{abcd}take fewer local steps, or {lower}"
        )
    if silos < CROWD or known.takes_turns:
        return both
    together = f"{silos} silos descend at the same time, each as if"
    anticipated = known.anticipated(silos)
    if anticipated is None:
        return f"{together} the others stood still: {abcd}{both}"
    if anticipated < silos:
        return (
            f"{together} all of them moved {anticipated:g} times as far as it alone: set algorithm.anticipation = "
            f"'silos', or {both}"
        )
    return both
