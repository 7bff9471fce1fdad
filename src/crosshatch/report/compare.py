"""What several runs reached, and what it cost them to reach a target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.errors import RunError
from crosshatch.report.measures import Target, best_row, first_reaching, metric_title, parse_target, sort_metrics
from crosshatch.report.runs import Run
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds
from crosshatch.task.directions import HIGHER_IS_BETTER

# Characters of a run's name in a table for the terminal, more are folded.
_NAME_WIDTH = 30


@dataclass(frozen=True)
class Arrival:
    """The first evaluation at which a run had reached a target."""

    round: int
    bytes: float
    sim_seconds: float
    value: float
    communications: float = math.nan  # where the run counts in those


@dataclass(frozen=True)
class Best:
    """The best value of a metric and the first round that had it."""

    value: float
    round: int


@dataclass(frozen=True)
class Outcome:
    """One run: totals, final and best metrics, and its arrival at each target (None: not reached)."""

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


@dataclass(frozen=True)
class Comparison:
    """Outcomes in the order of the runs given. `metrics`: all names, in order of first appearance."""

    targets: tuple[Target, ...]
    metrics: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


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
    parsed = tuple(dict.fromkeys(parse_target(item) if isinstance(item, str) else item for item in targets))
    for target in parsed:
        for run in runs:
            if target.metric not in run.metric_names:
                raise RunError(
                    f"run '{run.name}' has no metric '{target.metric}' for target {target.label}: "
                    f"choose from {', '.join(run.metric_names) or 'none: it measured nothing'}"
                )
    metrics = tuple(dict.fromkeys(name for run in runs for name in run.metric_names))
    return Comparison(parsed, metrics, tuple(_outcome(run, parsed) for run in runs))


def find_arrival(run: Run, target: Target) -> Arrival | None:
    """None when the run never reached the target."""
    row = first_reaching(run.metrics, target)
    if row is None:
        return None
    communications = row.get("communications", math.nan)
    return Arrival(int(row["round"]), row["bytes"], row["sim_seconds"], row[target.metric], communications)


def find_best(run: Run, metric: str) -> Best | None:
    """None when it is unknown which direction is better, or when no value is finite."""
    if metric not in HIGHER_IS_BETTER:
        return None
    rows = [row for row in run.metrics if math.isfinite(row.get(metric, math.nan))]
    if not rows:
        return None
    row = best_row(rows, metric)
    return Best(row[metric], int(row["round"]))


def _outcome(run: Run, targets: tuple[Target, ...]) -> Outcome:
    last, facts = run.metrics[-1], run.facts

    def total(written: float | None, key: str) -> float:
        return written if written is not None else last.get(key, math.nan)

    best = {metric: find_best(run, metric) for metric in run.metric_names}
    return Outcome(
        name=run.name,
        algorithm=run.algorithm,
        finished=run.finished,
        rounds=int(total(facts.rounds, "round")),
        bytes=total(facts.bytes, "bytes"),
        messages=total(facts.messages, "messages"),
        sim_seconds=total(facts.sim_seconds, "sim_seconds"),
        wall_seconds=total(facts.wall_seconds, "wall_seconds"),
        final={metric: last[metric] for metric in run.metric_names if metric in last},
        best={metric: found for metric, found in best.items() if found is not None},
        arrivals={target.label: find_arrival(run, target) for target in targets},
        diverged=None if facts.diverged is None else facts.diverged.round,
    )


def print_comparison(result: Comparison, console: Console) -> None:
    """Two kinds of table: totals with final metrics, as many as fit into the console; one table per target."""
    metrics = sort_metrics(result.metrics)
    unbounded = console.options.update(width=10_000)
    while len(metrics) > 1 and console.measure(_totals(result, metrics), options=unbounded).maximum > console.width:
        metrics = metrics[:-1]
    console.print(_totals(result, metrics))
    for target in result.targets:
        console.print(_target_table(result, target))


def _totals(result: Comparison, metrics: Sequence[str]) -> Table:
    table = Table(title="What the runs reached, and what they sent")
    table.add_column("run", overflow="fold", max_width=_NAME_WIDTH)
    for heading in ("rounds", "sent", "simulated", *(metric_title(metric) for metric in metrics)):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in result.outcomes:
        values = [human_number(outcome.final[m]) if m in outcome.final else "-" for m in metrics]
        table.add_row(_name(outcome), human_count(outcome.rounds), human_bytes(outcome.bytes),
                      human_seconds(outcome.sim_seconds), *values)  # fmt: skip
    return table


def _target_table(result: Comparison, target: Target) -> Table:
    side = "at least" if target.higher else "at most"
    table = Table(title=f"To reach {metric_title(target.metric)} of {side} {target.value:g}")
    table.add_column("run", overflow="fold", max_width=_NAME_WIDTH)
    for heading in ("rounds", "sent", "simulated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in result.outcomes:
        arrival = outcome.arrivals[target.label]
        if arrival is None:
            best = outcome.best.get(target.metric)
            table.add_row(_name(outcome), "not reached", f"best {human_number(best.value)}" if best else "", "")
        else:
            table.add_row(_name(outcome), human_count(arrival.round), human_bytes(arrival.bytes),
                          human_seconds(arrival.sim_seconds))  # fmt: skip
    return table


def remark(outcome: Outcome) -> str:
    """What to know of a run before its numbers are compared; empty where it ended well."""
    if outcome.diverged is not None:
        return f"diverged at round {human_count(outcome.diverged)}"
    return "" if outcome.finished else "unfinished"


def _name(outcome: Outcome) -> Text:
    # Text, so that square brackets in a name are not taken for markup
    return Text(f"{outcome.name} ({remark(outcome)})" if remark(outcome) else outcome.name)
