"""A comparison as tables for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.report.compare import Arrival, ComparedRun, Comparison, remark, seconds_apart
from crosshatch.report.measures import Target, metric_title, sort_metrics
from crosshatch.report.runs import add_remark
from crosshatch.report.units import human_bytes, human_count, human_number, human_range, human_seconds, with_deviation
from crosshatch.report.word_widths import keep_words

# Characters of a run's name, more are folded.
_NAME_WIDTH = 30


def print_comparison(result: Comparison, console: Console) -> None:
    """Two kinds of table: totals with final metrics, as many as fit into the console; one table per target."""
    metrics = sort_metrics(result.metrics)
    unbounded = console.options.update(width=10_000)
    while len(metrics) > 1 and console.measure(_totals(result, metrics), options=unbounded).maximum > console.width:
        metrics = metrics[:-1]
    console.print(keep_words(_totals(result, metrics), console))
    for target in result.targets:
        console.print(keep_words(_target_table(result, target), console))
    if result.targets:
        console.print(result.looked, markup=False, highlight=False)
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


def _arrival_cells(outcome: ComparedRun, target: Target, arrived: Sequence[Arrival]) -> tuple[str, str, str]:
    arrival = outcome.arrivals[target.label]
    if arrival is None:
        best = outcome.best.get(target.metric)
        words = "by too few" if arrived else "not reached"
        return words, f"closest {human_number(best.value)}" if best else "", ""
    return (
        _with_range(human_count, arrival.round, [one.round for one in arrived]),
        _with_range(human_bytes, arrival.bytes, [one.bytes for one in arrived]),
        _with_range(human_seconds, arrival.sim_seconds, [one.sim_seconds for one in arrived])
        + "".join(f"\n{part}" for part in seconds_apart(arrival)[1:]),
    )


def _with_range(words: Callable[[float], str], middle: float, values: Sequence[float]) -> str:
    between = human_range(words, values)
    return words(middle) + (f"\nfrom {between[0]}\nto {between[1]}" if between else "")


def _name(outcome: ComparedRun) -> Text:
    # Text, so that square brackets in a name are not taken for markup
    return Text(add_remark(outcome.name, remark(outcome)))
