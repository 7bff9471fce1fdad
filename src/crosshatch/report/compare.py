"""What several runs reached, and what it cost them to reach a target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from crosshatch.errors import RunError
from crosshatch.report.measures import Target, best_row, first_reaching, parse_target
from crosshatch.report.pooled import counted, deviation
from crosshatch.report.rows_apart import looked, rows_apart
from crosshatch.report.runs import Run, directions_of
from crosshatch.report.units import human_count, human_seconds

if TYPE_CHECKING:
    import polars as pl


_TOTALS = ("bytes", "messages", "sim_seconds", "wall_seconds", "computing_seconds", "real_seconds")


@dataclass(frozen=True)
class Arrival:
    """The first evaluation at which a run had reached a target; of several seeds the median of each."""

    round: float
    bytes: float
    sim_seconds: float
    value: float
    communications: float = math.nan  # where the run counts in those
    computing_seconds: float = math.nan  # where it tells them from those of messages


@dataclass(frozen=True)
class Best:
    """The best value of a metric and the first round that had it; of several seeds their mean and median."""

    value: float
    round: float


@dataclass(frozen=True)
class ComparedRun:
    """One run: totals, final and best metrics, and its arrival at each target (None: not reached).

    Of several `seeds` these are means, over those that finished and did not diverge, and `deviation` and
    `best_deviation` say how far `final` and `best` vary.
    """

    name: str
    algorithm: str
    finished: bool
    rounds: int
    bytes: float
    messages: float
    sim_seconds: float
    wall_seconds: float
    final: dict[str, float]
    best: dict[str, Best]
    arrivals: dict[str, Arrival | None]
    diverged: int | None = None  # the round at which it was noticed
    computing_seconds: float = math.nan  # where the run tells them from those of messages
    real_seconds: float = math.nan  # of parties that were processes
    deviation: dict[str, float] = field(default_factory=dict)
    best_deviation: dict[str, float] = field(default_factory=dict)
    seeds: tuple[ComparedRun, ...] = ()
    tested: str = ""  # on which test rows, where runs have not all the same
    chosen: dict[str, float] = field(default_factory=dict)  # at the round that validation rows chose, if there are any

    def arrived(self, target: Target) -> list[Arrival]:
        """The arrivals of all seeds that reached the target and did not diverge."""
        found = [one.arrivals[target.label] for one in self.seeds if one.diverged is None]
        return [arrival for arrival in found if arrival is not None]


@dataclass(frozen=True)
class Comparison:
    """Outcomes in the order of the runs given. `metrics`: all names, in order of first appearance.

    `notes` say which runs were not tested on the same rows, and of which it cannot be told; `looked` at which rounds
    a target could be seen to be reached.
    """

    targets: tuple[Target, ...]
    metrics: tuple[str, ...]
    outcomes: tuple[ComparedRun, ...]
    notes: tuple[str, ...] = ()
    looked: str = ""

    @property
    def table(self) -> pl.DataFrame:
        """One line per run: totals, the final metrics, and round, bytes and seconds to each target (null: never)."""
        import polars as pl  # late: half a second that a command without tables need not wait

        return pl.DataFrame([_line(outcome, self) for outcome in self.outcomes], infer_schema_length=None)


def _line(outcome: ComparedRun, result: Comparison) -> dict[str, object]:
    line: dict[str, object] = {
        "run": outcome.name, "algorithm": outcome.algorithm, "rounds": outcome.rounds, "bytes": float(outcome.bytes),
        "sim_seconds": float(outcome.sim_seconds),
        **{metric: outcome.final.get(metric) for metric in result.metrics},
    }  # fmt: skip
    for target in result.targets:
        found = outcome.arrivals[target.label]
        for key in ("round", "bytes", "sim_seconds"):
            line[f"{target.label} {key}"] = None if found is None else float(getattr(found, key))
    return line


def compare_runs(runs: Sequence[Run], targets: Iterable[str | Target] = ()) -> Comparison:
    """Compare by what metrics.jsonl says, so that unfinished runs count too.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from crosshatch import read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = '{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": 0.75}'
    ...     written = Path(folder, "metrics.jsonl").write_text(line)
    ...     result = compare_runs([read_run(folder)], ["auc=0.7"])
    >>> arrival = result.outcomes[0].arrivals["auc>=0.7"]
    >>> arrival.round, arrival.bytes, arrival.value
    (10, 8000, 0.75)
    """
    if not runs:
        raise RunError("no runs to compare: name at least one run directory")
    known = directions_of(runs)
    parsed = tuple(dict.fromkeys(parse_target(item, known) if isinstance(item, str) else item for item in targets))
    for target in parsed:
        for run in runs:
            if target.metric not in run.metric_names:
                raise RunError(
                    f"run '{run.name}' has no metric '{target.metric}' for target {target.label}: "
                    f"choose from {', '.join(run.metric_names) or 'none: it measured nothing'}"
                )
    metrics = tuple(dict.fromkeys(name for run in runs for name in run.metric_names))
    tested = rows_apart(runs)
    outcomes = [_mean_outcome(run, parsed) if run.seeds else _outcome(run, parsed) for run in runs]
    marked = tuple(replace(one, tested=mark) for one, mark in zip(outcomes, tested.marks, strict=True))
    return Comparison(parsed, metrics, marked, tested.notes, looked(runs, parsed))


def find_arrival(run: Run, target: Target) -> Arrival | None:
    """None when the run never reached the target.

    Of several seeds the median, in which one that never arrives or diverges counts as later than all others; None when
    that leaves none.
    """
    if run.seeds:
        every = [None if one.diverged else find_arrival(one, target) for one in run.seeds]
        found = [arrival for arrival in every if arrival is not None]
        if len(found) < len(every) // 2 + 1:
            return None
        never = [math.inf] * (len(every) - len(found))
        costs = [key.name for key in fields(Arrival) if key.name != "value"]
        medians = {key: median([*(getattr(one, key) for one in found), *never]) for key in costs}
        return Arrival(value=target.value, **medians)
    row = first_reaching(run.metrics, target, run.smooth)
    if row is None:
        return None
    further = {key: row.get(key, math.nan) for key in ("communications", "computing_seconds")}
    return Arrival(int(row["round"]), row["bytes"], row["sim_seconds"], row[target.metric], **further)


def find_best(run: Run, metric: str) -> Best | None:
    """None when it is unknown which direction is better, or when no value is finite."""
    if run.seeds:
        bests = [best for one in counted(run.seeds) if (best := find_best(one, metric))]
        return Best(fmean(best.value for best in bests), median(best.round for best in bests)) if bests else None
    known = run.directions
    if metric not in known:
        return None
    rows = [row for row in run.metrics if math.isfinite(row.get(metric, math.nan))]
    if not rows:
        return None
    row = best_row(rows, metric, known)
    return Best(row[metric], int(row["round"]))


def _outcome(run: Run, targets: tuple[Target, ...]) -> ComparedRun:
    last, facts = run.metrics[-1], run.facts

    def total(key: str, of_row: str = "") -> float:
        written: float | None = getattr(facts, key)
        return written if written is not None else last.get(of_row or key, math.nan)

    totals: dict[str, Any] = {key: total(key) for key in _TOTALS}
    return ComparedRun(
        rounds=int(total("rounds", "round")),
        **totals,
        **_of_any(run, targets),
        final={metric: last[metric] for metric in run.metric_names if metric in last},
        chosen={name: facts.best_round[name] for name in ("round", *run.metric_names) if name in facts.best_round},
    )


def _mean_outcome(run: Run, targets: tuple[Target, ...]) -> ComparedRun:
    counting = [_outcome(one, targets) for one in counted(run.seeds)]
    shared = [metric for metric in run.metric_names if all(metric in one.final for one in counting)]
    finals = {metric: [one.final[metric] for one in counting] for metric in shared}
    bests = {m: [one.best[m].value for one in counting if m in one.best] for m in run.metric_names}
    totals: dict[str, Any] = {key: fmean(getattr(one, key) for one in counting) for key in _TOTALS}
    return ComparedRun(
        rounds=round(fmean(one.rounds for one in counting)),
        **totals,
        **_of_any(run, targets),
        final={metric: fmean(values) for metric, values in finals.items()},
        deviation={metric: deviation(values) for metric, values in finals.items()},
        best_deviation={metric: deviation(values) for metric, values in bests.items() if values},
        seeds=tuple(_outcome(one, targets) for one in run.seeds),
        chosen={
            name: fmean(one.chosen[name] for one in counting)
            for name in ("round", *run.metric_names)
            if all(name in one.chosen for one in counting)
        },
    )


def _of_any(run: Run, targets: tuple[Target, ...]) -> dict[str, Any]:
    """What is said alike of a run and of several seeds."""
    best = {metric: find_best(run, metric) for metric in run.metric_names}
    return {
        "name": run.name,
        "algorithm": run.algorithm,
        "finished": run.finished,
        "best": {metric: found for metric, found in best.items() if found is not None},
        "arrivals": {target.label: find_arrival(run, target) for target in targets},
        "diverged": None if run.facts.diverged is None else run.facts.diverged.round,
    }


def seconds_apart(of: ComparedRun | Arrival) -> list[str]:
    """Simulated time and, where it is known, what of it is computing and what messages."""
    words = [human_seconds(of.sim_seconds)]
    if math.isfinite(of.computing_seconds):
        messages = of.sim_seconds - of.computing_seconds
        words += [f"computing {human_seconds(of.computing_seconds)}", f"messages {human_seconds(messages)}"]
    return words


def remark(outcome: ComparedRun) -> str:
    """What to know of a run before its numbers are compared; empty where it ended well and was tested as all were."""
    lost = sum(one.diverged is not None for one in outcome.seeds)
    unfinished = sum(one.diverged is None and not one.finished for one in outcome.seeds)
    words = [f"{n} {word}" for n, word in ((lost, "diverged"), (unfinished, "unfinished")) if n]
    if not outcome.seeds and outcome.diverged is not None:
        words = [f"diverged at round {human_count(outcome.diverged)}"]
    elif not outcome.seeds and not outcome.finished:
        words = ["unfinished"]
    return ", ".join([*words, *filter(None, [outcome.tested])])
