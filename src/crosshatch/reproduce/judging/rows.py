"""What was measured: for every setting of a table one number per seed, and the paper's where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from statistics import fmean, stdev

from crosshatch.errors import RunError

FEWEST_SEEDS = 3
NOT_REACHED = inf
"""More rounds, bytes or seconds than there are."""


@dataclass(frozen=True)
class Row:
    """`what` was measured of a `setting`, a number per seed in the order of the seeds; infinite: not reached.

    >>> Row("FedSGD", "rounds", (10.0, 12.0, 14.0)).mean
    12.0
    """

    setting: str
    what: str
    ours: tuple[float, ...]
    paper: float | None = None
    reading: str = "own"

    @property
    def mean(self) -> float:
        """Of all seeds, so infinite where one is."""
        return fmean(self.ours)

    @property
    def deviation(self) -> float | None:
        """The sample's; None where a number is not finite."""
        return stdev(self.ours) if len(self.ours) > 1 and all(map(isfinite, self.ours)) else None


@dataclass(frozen=True)
class Rows:
    """The rows of one reading. Seeds are paired: the i-th numbers of all rows are of the same seed."""

    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        """Refuse too few seeds to judge by."""
        for row in self.rows:
            if len(row.ours) < FEWEST_SEEDS:
                raise RunError(
                    f"{row.setting}, {row.what}: {len(row.ours)} seeds, and a verdict needs {FEWEST_SEEDS} at least: "
                    "run more seeds"
                )
            if len(row.ours) != len(self.rows[0].ours):
                raise RunError(
                    f"{row.setting}, {row.what}: {len(row.ours)} seeds where {self.rows[0].setting} has "
                    f"{len(self.rows[0].ours)}: seeds are compared in pairs, run the same for both"
                )

    def of(self, setting: str, what: str) -> tuple[float, ...]:
        found = [row.ours for row in self.rows if row.setting == setting and row.what == what]
        if len(found) != 1:
            raise RunError(f"{len(found)} rows are called {setting!r}, {what!r}: one is needed")
        return found[0]

    def paper(self, setting: str, what: str) -> float | None:
        """The paper's number."""
        return next(row.paper for row in self.rows if row.setting == setting and row.what == what)


def read(rows: Sequence[Row], reading: str) -> Rows:
    """The rows of a reading; those that have no step size to read belong to every one."""
    return Rows(tuple(row for row in rows if row.reading in (reading, "")))
