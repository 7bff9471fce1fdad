"""When it was looked whether a target is reached: what lies between two evaluations nobody has seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import mode

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
