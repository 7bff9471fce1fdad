"""Which runs were tested on the same rows, as far as their fingerprints tell, and when each was looked at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mode
from string import ascii_uppercase

from crosshatch.data.identity.fingerprint import same_test_rows
from crosshatch.report.measures import Target
from crosshatch.report.runs import Run


def looked(runs: Sequence[Run], targets: Sequence[Target] = ()) -> str:
    """In a sentence, for below a table of targets.

    >>> looked([])
    ''
    """
    if not runs:
        return ""
    ways: dict[str, list[str]] = {}
    smooth = max((target.smooth for target in targets), default=1)
    for run in runs:
        ways.setdefault(_way(run, max(run.smooth, smooth)), []).append(run.name)
    if len(ways) == 1:
        return f"Looked {next(iter(ways))}."
    return "Looked " + "; ".join(f"{way} ({', '.join(names)})" for way, names in ways.items()) + "."


def _way(run: Run, smooth: int) -> str:
    rounds = [int(row["round"]) for row in run.metrics]
    steps = [later - earlier for earlier, later in pairwise(rounds)]
    when = f"at round {rounds[0]} only" if not steps else "after every round" if (step := mode(steps)) == 1 else (
        f"after every {step} rounds"
    )  # fmt: skip
    mean = f", at the mean of {smooth} evaluations" if smooth > 1 else ""
    return when + mean


_MOST_NAMES = 6


@dataclass(frozen=True)
class RowsApart:
    """What to know before runs are ranked: `notes` in whole sentences, none where all have the same test rows.

    `marks` has a word for each run where some are known to have others, and is empty words where none is.
    """

    marks: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def differ(self) -> bool:
        """Whether some runs are known to have other test rows than others."""
        return any(self.marks)


def rows_apart(runs: Sequence[Run]) -> RowsApart:
    """Divide runs by the rows they were tested on; of those taken together it is said where that cannot be told."""
    pooled = [run for run in runs if run.seeds and run.fingerprint is None]
    of_seeds = tuple(note for run in pooled for note in rows_apart(run.seeds).notes)
    groups: list[list[int]] = []  # in each: runs with the same rows
    for number, run in enumerate(runs):
        own = next((group for group in groups if any(_same(run, runs[other]) for other in group)), None)
        if own is None:
            groups.append([number])
        else:
            own.append(number)
    if len(groups) < 2:
        return RowsApart(("",) * len(runs), of_seeds)
    apart = [group for group in groups if any(_same(runs[group[0]], runs[other[0]]) is False for other in groups)]
    unsure = [group for group in groups if any(_same(runs[group[0]], runs[o[0]]) is None for o in groups if o != group)]
    marks = ["test rows unknown" if apart else ""] * len(runs)
    for place, group in enumerate(apart):
        for number in group:
            marks[number] = f"test rows {_letter(place)}"
    notes = []
    if apart:
        parts = (f"{_names(runs, group)} ({_letter(place)})" for place, group in enumerate(apart))
        notes.append(
            "These runs were not tested on the same rows with the same labels, and are not ranked against each other: "
            f"{'; '.join(parts)}."
        )
    if unsure:
        notes.append(f"It cannot be told whether these were tested on the same rows: {_unsure(runs, unsure)}.")
    return RowsApart(tuple(marks), (*notes, *of_seeds))


def _same(one: Run, other: Run) -> bool | None:
    if one.fingerprint is None or other.fingerprint is None:
        return None
    return same_test_rows(one.fingerprint, other.fingerprint)


def _unsure(runs: Sequence[Run], groups: Sequence[Sequence[int]]) -> str:
    """The runs by what keeps one from telling: other keys, no fingerprint, or no column in common."""
    by_key: dict[str, list[int]] = {}
    for number in sorted(number for group in groups for number in group):
        found = runs[number].fingerprint
        by_key.setdefault("no fingerprint" if found is None else f"key {found.key}", []).append(number)
    return "; ".join(f"{_names(runs, numbers)} ({why})" for why, numbers in by_key.items())


def _names(runs: Sequence[Run], group: Iterable[int]) -> str:
    names = [runs[number].name for number in group]
    return ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )


def _letter(place: int) -> str:
    return ascii_uppercase[place] if place < len(ascii_uppercase) else str(place + 1)
