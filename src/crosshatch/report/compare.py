"""What several runs reached, and what it cost them to reach a target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.errors import RunError
from crosshatch.report.measures import Target, best_row, first_reaching, metric_title, parse_target, sort_metrics
from crosshatch.report.pooled import counted, deviation
from crosshatch.report.rows_apart import rows_apart
from crosshatch.report.runs import Run, add_remark, directions_of
from crosshatch.report.units import human_bytes, human_count, human_number, human_range, human_seconds, with_deviation
from crosshatch.report.word_widths import keep_words

# Characters of a run's name in a table for the terminal, more are folded.
_NAME_WIDTH = 30


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
class Outcome:
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
    deviation: dict[str, float] = field(default_factory=dict)
    best_deviation: dict[str, float] = field(default_factory=dict)
    seeds: tuple[Outcome, ...] = ()
    tested: str = ""  # on which test rows, where runs have not all the same

    def arrived(self, target: Target) -> list[Arrival]:
        """The arrivals of all seeds that reached the target and did not diverge."""
        found = [one.arrivals[target.label] for one in self.seeds if one.diverged is None]
        return [arrival for arrival in found if arrival is not None]


@dataclass(frozen=True)
class Comparison:
    """Outcomes in the order of the runs given. `metrics`: all names, in order of first appearance.

    `notes` say which runs were not tested on the same rows, and of which it cannot be told.
    """

    targets: tuple[Target, ...]
    metrics: tuple[str, ...]
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()


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
    return Comparison(parsed, metrics, marked, tested.notes)


def find_arrival(run: Run, target: Target) -> Arrival | None:
    """None when the run never reached the target.

    Of several seeds the median, in which one that never arrives or diverges counts as later than all others; None when
    that leaves none.
    """
    if run.seeds:
        found = [None if one.diverged else find_arrival(one, target) for one in run.seeds]
        return _median_arrival([arrival for arrival in found if arrival is not None], len(found), target)
    row = first_reaching(run.metrics, target)
    if row is None:
        return None
    further = {key: row.get(key, math.nan) for key in ("communications", "computing_seconds")}
    return Arrival(int(row["round"]), row["bytes"], row["sim_seconds"], row[target.metric], **further)


def _median_arrival(found: Sequence[Arrival], seeds: int, target: Target) -> Arrival | None:
    if len(found) < seeds // 2 + 1:
        return None
    never = [math.inf] * (seeds - len(found))
    rounds, sizes = median([*(a.round for a in found), *never]), median([*(a.bytes for a in found), *never])
    seconds = median([*(a.sim_seconds for a in found), *never])
    communications = median([*(a.communications for a in found), *never])
    computing = median([*(a.computing_seconds for a in found), *never])
    return Arrival(rounds, sizes, seconds, target.value, communications, computing)


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
        computing_seconds=total(facts.computing_seconds, "computing_seconds"),
    )


def _mean_outcome(run: Run, targets: tuple[Target, ...]) -> Outcome:
    seeds = tuple(_outcome(one, targets) for one in run.seeds)
    counting = [_outcome(one, targets) for one in counted(run.seeds)]
    shared = [metric for metric in run.metric_names if all(metric in one.final for one in counting)]
    finals = {metric: [one.final[metric] for one in counting] for metric in shared}
    bests = {m: [one.best[m].value for one in counting if m in one.best] for m in run.metric_names}
    best = {metric: find_best(run, metric) for metric in run.metric_names}
    return Outcome(
        name=run.name,
        algorithm=run.algorithm,
        finished=run.finished,
        rounds=round(fmean(one.rounds for one in counting)),
        bytes=fmean(one.bytes for one in counting),
        messages=fmean(one.messages for one in counting),
        sim_seconds=fmean(one.sim_seconds for one in counting),
        wall_seconds=fmean(one.wall_seconds for one in counting),
        final={metric: fmean(values) for metric, values in finals.items()},
        best={metric: found for metric, found in best.items() if found is not None},
        arrivals={target.label: find_arrival(run, target) for target in targets},
        diverged=None if run.facts.diverged is None else run.facts.diverged.round,
        computing_seconds=fmean(one.computing_seconds for one in counting),
        deviation={metric: deviation(values) for metric, values in finals.items()},
        best_deviation={metric: deviation(values) for metric, values in bests.items() if values},
        seeds=seeds,
    )


def print_comparison(result: Comparison, console: Console) -> None:
    """Two kinds of table: totals with final metrics, as many as fit into the console; one table per target."""
    metrics = sort_metrics(result.metrics)
    unbounded = console.options.update(width=10_000)
    while len(metrics) > 1 and console.measure(_totals(result, metrics), options=unbounded).maximum > console.width:
        metrics = metrics[:-1]
    console.print(keep_words(_totals(result, metrics), console))
    for target in result.targets:
        console.print(keep_words(_target_table(result, target), console))
    for note in result.notes:
        console.print(f"note: {note}", markup=False, highlight=False)


def _totals(result: Comparison, metrics: Sequence[str]) -> Table:
    pooled = any(outcome.seeds for outcome in result.outcomes)
    table = Table(title="What the runs reached, and what they sent" + (": means over seeds" if pooled else ""))
    table.add_column("run", overflow="fold", max_width=_NAME_WIDTH)
    for heading in ("rounds", "sent", "simulated", *(metric_title(metric) for metric in metrics)):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in result.outcomes:
        values = [with_deviation(outcome.final[m], outcome.deviation.get(m)) if m in outcome.final else "-"
                  for m in metrics]  # fmt: skip
        table.add_row(_name(outcome), human_count(outcome.rounds), human_bytes(outcome.bytes),
                      "\n".join(seconds_apart(outcome)), *values)  # fmt: skip
    return table


def _target_table(result: Comparison, target: Target) -> Table:
    pooled = any(outcome.seeds for outcome in result.outcomes)
    side = "at least" if target.higher else "at most"
    title = f"To reach {metric_title(target.metric)} of {side} {target.value:g}"
    table = Table(title=title + (": medians over seeds" if pooled else ""))
    table.add_column("run", overflow="fold", max_width=_NAME_WIDTH)
    for heading in (*(("seeds",) if pooled else ()), "rounds", "sent", "simulated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for outcome in result.outcomes:
        arrived = outcome.arrived(target)
        share = (f"{len(arrived)} of {len(outcome.seeds)}" if outcome.seeds else "",) if pooled else ()
        table.add_row(_name(outcome), *share, *_arrival_cells(outcome, target, arrived))
    return table


def _arrival_cells(outcome: Outcome, target: Target, arrived: Sequence[Arrival]) -> tuple[str, str, str]:
    arrival = outcome.arrivals[target.label]
    if arrival is None:
        best = outcome.best.get(target.metric)
        words = "by too few" if arrived else "not reached"
        return words, f"best {human_number(best.value)}" if best else "", ""
    return (
        _with_range(human_count, arrival.round, [one.round for one in arrived]),
        _with_range(human_bytes, arrival.bytes, [one.bytes for one in arrived]),
        _with_range(human_seconds, arrival.sim_seconds, [one.sim_seconds for one in arrived])
        + "".join(f"\n{part}" for part in seconds_apart(arrival)[1:]),
    )


def seconds_apart(of: Outcome | Arrival) -> list[str]:
    """Simulated time and, where it is known, what of it is computing and what messages."""
    words = [human_seconds(of.sim_seconds)]
    if math.isfinite(of.computing_seconds):
        messages = of.sim_seconds - of.computing_seconds
        words += [f"computing {human_seconds(of.computing_seconds)}", f"messages {human_seconds(messages)}"]
    return words


def _with_range(words: Callable[[float], str], middle: float, values: Sequence[float]) -> str:
    between = human_range(words, values)
    return words(middle) + (f"\nfrom {between[0]}\nto {between[1]}" if between else "")


def remark(outcome: Outcome) -> str:
    """What to know of a run before its numbers are compared; empty where it ended well and was tested as all were."""
    lost = sum(one.diverged is not None for one in outcome.seeds)
    unfinished = sum(one.diverged is None and not one.finished for one in outcome.seeds)
    words = [f"{n} {word}" for n, word in ((lost, "diverged"), (unfinished, "unfinished")) if n]
    if not outcome.seeds and outcome.diverged is not None:
        words = [f"diverged at round {human_count(outcome.diverged)}"]
    elif not outcome.seeds and not outcome.finished:
        words = ["unfinished"]
    return ", ".join([*words, *filter(None, [outcome.tested])])


def _name(outcome: Outcome) -> Text:
    # Text, so that square brackets in a name are not taken for markup
    return Text(add_remark(outcome.name, remark(outcome)))
