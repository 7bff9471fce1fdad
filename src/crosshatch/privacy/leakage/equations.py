"""Equations about unknown labels: how many a run gives to silos without labels, and how many there were before.

A silo with samples X that gets its gradient of a batch learns X^T d: as many sums over the batch as it has columns. As
long as the batch stays the same the labels enter by X^T y alone, so that a batch counts once, in however many rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crosshatch.privacy.leakage.row_keys import Ids, RowKeys

MOST = 1 / 16
"""Equations per label over the life of the labels. Beyond it the plainest attack ranks labels with an AUC of 0.63."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Telling:
    """What one silo is told of every batch: `sums` over it, `times` over. `columns` is a digest of the factors."""

    silo: str
    columns: str
    sums: int
    times: int = 1


@dataclass(frozen=True)
class GivenEquations:
    """What one run gives: of `rows`, divided into batches by `batch_of` (n,), to every silo that is told anything.

    `clear`: derivatives travel in clear, all labels are given. `left_out` are rows that were left out of the run.
    """

    rows: RowKeys
    batch_of: npt.NDArray[np.uint32]
    told: tuple[Telling, ...]
    left_out: RowKeys
    clear: bool = False

    @property
    def batches(self) -> int:
        return int(self.batch_of.max(initial=0)) + 1

    @property
    def sizes(self) -> Ids:
        return np.bincount(self.batch_of, minlength=self.batches)

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """By which each batch is known again."""
        return tuple(self.rows.digest(np.flatnonzero(self.batch_of == batch)) for batch in range(self.batches))

    @property
    def equations(self) -> int:
        return len(self.rows) if self.clear else self.batches * sum(one.sums * one.times for one in self.told)


@dataclass(frozen=True)
class Count:
    """`equations` about some labels, each counted once, and the most that any label is part of (per label)."""

    equations: int
    most: float

    @property
    def too_many(self) -> bool:
        """Whether one label is in more than is allowed."""
        return self.most > MOST + _ROUNDING


def count(rows: RowKeys, given: Iterable[GivenEquations]) -> Count:
    """The distinct equations of runs that are about these rows; every one counts among the labels of its batch alike.

    A batch that shares some of its rows counts with all its equations, and burdens these rows by their share.
    """
    seen: dict[tuple[str, str, str], int] = {}
    load, equations, known = np.zeros(len(rows)), 0, np.zeros(len(rows), dtype=bool)
    for one in given:
        places = one.rows.places_in(rows)
        shared = places >= 0
        if not shared.any():
            continue
        if one.clear:
            equations += int((~known[places[shared]]).sum())
            known[places[shared]] = True
            continue
        new = _new_equations(one, seen)
        load += np.bincount(places[shared], (new / one.sizes)[one.batch_of[shared]], minlength=len(rows))
        equations += int(new[np.unique(one.batch_of[shared])].sum())
    return Count(equations, float((load + known).max(initial=0)))


def _new_equations(one: GivenEquations, seen: dict[tuple[str, str, str], int]) -> Ids:
    """Of every batch those that no earlier run gave; `seen` is told of them."""
    new = np.zeros(one.batches, np.int64)
    for batch, digest in enumerate(one.digests):
        for telling in one.told:
            key, sums = (telling.silo, telling.columns, digest), telling.sums * telling.times
            new[batch] += max(0, sums - seen.get(key, 0))
            seen[key] = max(sums, seen.get(key, 0))
    return new


def differing_rows(rows: RowKeys, other: RowKeys) -> int | None:
    """How many rows one set has and the other has not; None where they have none in common.

    The sums over all batches of two runs differ by those over these rows alone.
    """
    common = int((rows.places_in(other) >= 0).sum())
    return None if common == 0 else len(rows) + len(other) - 2 * common


def closest(rows: RowKeys, given: Sequence[GivenEquations]) -> int | None:
    """The smallest such difference that is not nothing."""
    found = [differing_rows(rows, one.rows) for one in given if not one.clear]
    return min((number for number in found if number), default=None)
