"""A recipe as a value: which runs, what is measured of them, by which rules it is judged, and what is drawn.

A recipe names no number of a paper: these are in papers.toml, each with its table, row and column.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from crosshatch.reproduce.judging.rows import Row, Rows
from crosshatch.reproduce.judging.rules import Check, Factor
from crosshatch.reproduce.measured import Measured

Profile = Literal["quick", "full"]
Reading = Literal["own", "common"]
PROFILES: tuple[Profile, ...] = ("quick", "full")


@dataclass(frozen=True)
class Search:
    """Which value every method takes: tried are `values`, `setting` says what with VALUE in it.

    `choose` is as `crosshatch sweep --choose` has it and never goes by test rows; an edge of the values is widened at
    most `widen` times. The common value is the largest at which the methods `common_by` reach the target of `choose`
    with two thirds of the seeds; without such methods there is no common reading.
    """

    setting: str
    values: tuple[float, ...]
    choose: str
    widen: int = 2
    common_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """A line of a table or a curve: what it changes in the config; `values` in place of those of the search."""

    name: str
    changes: tuple[str, ...] = ()
    values: tuple[float, ...] | None = None


@dataclass(frozen=True)
class RunSet:
    """Runs that several recipes may read: a config, its methods, seeds, and how values are searched for.

    `data` is the set that must be in the data folder; None where nothing is read. `changes` are of a profile. Without
    seeds for a profile it is not run there.
    """

    name: str
    config: str
    methods: tuple[Method, ...]
    seeds: Mapping[str, tuple[int, ...]]
    data: str | None = None
    search: Search | None = None
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """In which ways step sizes are read."""
        return ("own", "common") if self.search is not None and self.search.common_by else ("own",)

    def method(self, name: str) -> Method:
        """The method of that name."""
        return next(method for method in self.methods if method.name == name)


@dataclass(frozen=True)
class Curves:
    """A panel: a metric over rounds (or another column of the evaluations), a curve per method, means of the seeds."""

    title: str
    metric: str
    methods: tuple[str, ...]
    x: str = "round"
    labels: tuple[str, str] = ("rounds", "")
    logarithmic: tuple[bool, bool] = (False, False)
    last: float | None = None
    reading: Reading = "own"


@dataclass(frozen=True)
class Dots:
    """A panel: `what` of rows over a number, a series for each label; settings are (number, setting of the row)."""

    title: str
    what: str
    series: Mapping[str, tuple[tuple[float, str], ...]]
    labels: tuple[str, str]
    logarithmic: tuple[bool, bool] = (False, False)
    reading: Reading | Literal[""] = "own"  # empty: rows that belong to every reading


@dataclass(frozen=True)
class Beside:
    """A panel: for each setting the paper's number and ours, every seed a mark."""

    title: str
    what: str
    label: str
    readings: tuple[Reading, ...] = ("own",)
    logarithmic: bool = True


Panel = Curves | Dots | Beside


@dataclass(frozen=True)
class Recipe:
    """One table or figure. `place` is where in the paper; `minutes` its share of processor time in the quick profile.

    `measure` makes rows of the runs, `rules` checks of the rows of one reading; the verdict is that of *own*.
    """

    id: str
    paper: str
    place: str
    shows: str
    sets: tuple[RunSet, ...]
    measure: Callable[[Measured], list[Row]]
    rules: Callable[[Rows], list[Check]]
    panels: tuple[Panel, ...]
    minutes: float
    same: tuple[str, ...]
    differs: Mapping[str, str]
    factors: Callable[[Rows], list[Factor]] = lambda _: []
    note: str = ""

    def sets_of(self, profile: Profile) -> tuple[RunSet, ...]:
        """Those that are run in a profile."""
        return tuple(one for one in self.sets if profile in one.seeds)

    @property
    def data(self) -> tuple[str, ...]:
        """The sets that must be in the data folder."""
        return tuple(dict.fromkeys(one.data for one in self.sets if one.data is not None))

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Both where some of its runs have both."""
        return max((one.readings for one in self.sets), key=len)
