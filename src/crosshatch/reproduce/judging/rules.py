"""Checks and verdicts, as the recipes' specification defines them.

A check passes if it is true of the means and in at least two thirds of the seeds. Two infinities cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf, isinf
from statistics import fmean
from typing import Literal

from crosshatch.reproduce.judging.rows import Rows

Outcome = Literal["passes", "fails", "undecided"]
Verdict = Literal["holds", "holds in part", "does not hold", "not run"]
NEAR = 1.5
OUT_OF_REACH = "target out of reach"
Holds = bool | None
"""None: two infinities were to be compared."""


@dataclass(frozen=True)
class Check:
    """One comparison: `numbers` are the seeds' by name; `by_seed` and `of_means` say where it is true."""

    name: str
    words: str
    main: bool
    outcome: Outcome
    numbers: Mapping[str, tuple[float, ...]]
    by_seed: tuple[Holds, ...]
    of_means: Holds


def check(
    name: str,
    words: str,
    rows: Rows,
    names: Mapping[str, tuple[str, str]],
    holds: Callable[[Mapping[str, float]], Holds],
    *,
    main: bool = False,
    every_seed: bool = False,
) -> Check:
    """`holds` of the numbers of each seed and of their means; `names` are (setting, what) of rows."""
    numbers = {key: rows.of(*row) for key, row in names.items()}
    seeds = len(next(iter(numbers.values())))
    by_seed = tuple(holds({key: ours[i] for key, ours in numbers.items()}) for i in range(seeds))
    of_means = holds({key: fmean(ours) for key, ours in numbers.items()})
    true = sum(one is True for one in by_seed)
    enough = true == seeds if every_seed else 3 * true >= 2 * seeds
    outcome: Outcome = "undecided" if of_means is None else "passes" if of_means and enough else "fails"
    return Check(name, words, main, outcome, numbers, by_seed, of_means)


@dataclass(frozen=True)
class JudgedReading:
    """A verdict, and why nothing was judged where that is so."""

    verdict: Verdict
    why: str = ""
    checks: tuple[Check, ...] = field(default=())


def judge(checks: Sequence[Check]) -> JudgedReading:
    """The verdict of a recipe's checks."""
    main = [one.outcome for one in checks if one.main]
    if "undecided" in main:
        return JudgedReading("not run", OUT_OF_REACH, tuple(checks))
    if all(one.outcome == "passes" for one in checks):
        return JudgedReading("holds", checks=tuple(checks))
    return JudgedReading("holds in part" if "passes" in main else "does not hold", checks=tuple(checks))


@dataclass(frozen=True)
class Factor:
    """How a ratio of ours compares with the paper's; it never changes a verdict.

    `at_least`: what is above was not reached with every seed, so the rounds that were run stand there.
    """

    name: str
    ours: float
    paper: float
    at_least: bool = False

    @property
    def near(self) -> bool:
        """
        >>> Factor("rounds", 6.8, 4.7).near, Factor("rounds", 1.2, 4.7).near
        (True, False)
        """
        return not self.at_least and 1 / NEAR <= self.ours / self.paper <= NEAR


def factor(name: str, rows: Rows, over: tuple[str, str], under: tuple[str, str], ran: tuple[str, str]) -> list[Factor]:
    """The ratio of two rows' means beside that of the paper's numbers; none where either is unknown.

    `ran` has the rounds that were run of what is above.
    """
    reached, fast = rows.of(*over), fmean(rows.of(*under))
    slow = [most if isinf(rounds) else rounds for rounds, most in zip(reached, rows.of(*ran), strict=True)]
    theirs = [rows.paper(*row) for row in (over, under)]
    if theirs[0] is None or theirs[1] is None or any(map(isinf, (fast, *slow))) or not fast:
        return []
    return [Factor(name, fmean(slow) / fast, theirs[0] / theirs[1], at_least=any(map(isinf, reached)))]


def below(one: float, other: float) -> Holds:
    """
    >>> below(1, 2), below(2, 2), below(float("inf"), 2), below(float("inf"), float("inf"))
    (True, False, False, None)
    """
    return None if isinf(one) and isinf(other) else one < other


def at_most(one: float, other: float) -> Holds:
    """As `below`, or level."""
    return None if isinf(one) and isinf(other) else one <= other


def within(one: float, other: float, times: float) -> Holds:
    """Neither more than so many times the other."""
    return None if isinf(one) and isinf(other) else one <= times * other and other <= times * one


def falls(numbers: Sequence[float]) -> Holds:
    """Every number is below the one before."""
    return every(below(later, earlier) for earlier, later in pairwise(numbers))


def every(found: object) -> Holds:
    """All true; None where one could not be compared and none is false.

    >>> every([True, None]), every([False, None]), every([True, True])
    (None, False, True)
    """
    known = list(found)  # type: ignore[call-overload]
    return False if False in known else None if None in known else True


def some(found: object) -> Holds:
    known = list(found)  # type: ignore[call-overload]
    return True if True in known else None if None in known else False


def spread(numbers: Sequence[float]) -> float:
    """The largest less the smallest; infinite where one is not there.

    >>> spread([3.0, 1.0]), spread([float("inf")] * 2)
    (2.0, inf)
    """
    return inf if any(map(isinf, numbers)) else max(numbers) - min(numbers)


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's: pairs in the same order less pairs in the opposite, over all pairs.

    >>> rank_correlation([1, 2, 3], [10, 20, 15])
    0.3333333333333333
    """
    pairs = [(i, j) for i in range(len(one)) for j in range(i)]
    signs = [_sign(one[i] - one[j]) * _sign(other[i] - other[j]) for i, j in pairs]
    return sum(signs) / len(pairs)


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
