"""What goes to the terminal, comparisons among it, with words left whole: rich alone narrows the widest columns."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from crosshatch.errors import visible
from crosshatch.report.compare import Arrival, ComparedRun, Comparison, remark, seconds_apart
from crosshatch.report.measures import Target, metric_title, sort_metrics
from crosshatch.report.runs import add_remark
from crosshatch.report.units import human_bytes, human_count, human_number, human_range, human_seconds, with_deviation


def keep_words(table: Table, console: Console) -> Table:
    """The table, whose columns are now as wide as their longest word at least; a console too narrow for it breaks some.

    >>> table = Table("local_steps", "remarks")
    >>> table.add_row("5", "diverged at the very first evaluation")
    >>> Console(width=28).print(keep_words(table, Console(width=28)))
    ┏━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
    ┃ local_steps ┃ remarks    ┃
    ┡━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
    │ 5           │ diverged   │
    │             │ at the     │
    │             │ very first │
    │             │ evaluation │
    └─────────────┴────────────┘
    """
    room = console.width - 3 * len(table.columns) - 1  # lines, and a space on either side of a cell
    measured = [_measure(column, console) for column in table.columns]
    widths = [one.minimum for one in measured]
    if sum(one.maximum for one in measured) > room >= sum(widths):
        for _ in range(room - sum(widths)):  # what is left goes to the narrowest that could use it
            widths[min(range(len(widths)), key=lambda i: (widths[i] >= measured[i].maximum, widths[i]))] += 1
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
    return table


def print_as_fits(tables: Iterable[Table], console: Console) -> None:
    """The first of these tables for which the console is wide enough, or else the last."""
    unbounded = console.options.update(width=10_000)
    table = Table()
    for table in tables:
        if console.measure(table, options=unbounded).maximum <= console.width:
            break
    console.print(keep_words(table, console))


def _measure(column: Column, console: Console) -> Measurement:
    """From the longest word to the longest line of all cells; where lines are not to be wrapped both are that."""
    wide = console.options.update(width=10_000)
    cells = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
    longest = max(one.maximum for one in cells)
    limit = longest if column.max_width is None else min(longest, column.max_width)
    return Measurement(min(limit, longest if column.no_wrap else max(one.minimum for one in cells)), limit)


def print_table(console: Console, headings: str, rows: Iterable[Iterable[RenderableType]], title: str = "") -> None:
    """A table; headings are parted by bars, and one that begins with > has its figures on the right.

    >>> print_table(Console(width=30), "silo|>clients", [("bank", "3")])
    ┏━━━━━━┳━━━━━━━━━┓
    ┃ silo ┃ clients ┃
    ┡━━━━━━╇━━━━━━━━━┩
    │ bank │       3 │
    └──────┴─────────┘
    """
    columns = [Column(one.lstrip(">"), justify="right" if one[:1] == ">" else "left") for one in headings.split("|")]
    table = Table(*columns, title=Text(visible(title), style="table.title") if title else None)
    for row in rows:
        table.add_row(*(Text(visible(cell)) if isinstance(cell, str) else cell for cell in row))
    for column in table.columns:
        column.overflow = "fold"
    console.print(keep_words(table, console))


def print_line(console: Console, line: str, style: str = "", *, whole: bool = True) -> None:
    """A line with files of this folder by their names: left whole for the terminal to break, or broken at words."""
    console.print(Text(visible(line.replace(f"{Path.cwd()}/", "")), style=style), soft_wrap=whole)


# Characters of a run's name, more are folded.
_NAME_WIDTH = 30


def print_comparison(result: Comparison, console: Console) -> None:
    """Two kinds of table: totals with final metrics, as many as fit into the console; one table per target."""
    metrics = sort_metrics(result.metrics)
    print_as_fits((_totals(result, metrics[:count]) for count in range(max(1, len(metrics)), 0, -1)), console)
    for target in result.targets:
        console.print(keep_words(_target_table(result, target), console))
    for line in (*([result.looked] if result.targets else []), *(f"note: {note}" for note in result.notes)):
        print_line(console, line, whole=False)


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
    return Text(visible(add_remark(outcome.name, remark(outcome))))
