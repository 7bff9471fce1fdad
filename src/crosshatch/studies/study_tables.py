"""A study's table, in full as CSV, for the terminal and for its page; and that page, with curves and costs below."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.errors import visible
from crosshatch.report.measures import metric_title, sort_metrics
from crosshatch.report.page import write_report
from crosshatch.report.page_tables import html_table
from crosshatch.report.pictures.page_header import Story
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.printed_tables import print_as_fits
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds
from crosshatch.studies.intervals import Interval
from crosshatch.studies.study_result import StudyResult, cost, verdict

_COSTS = {"round": "rounds", "bytes": "bytes", "sim_seconds": "simulated_seconds"}


def write_page(result: StudyResult, path: Path) -> None:
    """The whole page, as one file."""
    runs = [replace(pool_seeds(made.runs)[0], name=made.method.name) for made in result.made if made.runs]
    said = verdict(result)
    story = Story(
        headline=said.headline,
        eyebrow="Crosshatch study",
        certain=said.certain,
        uncertain=said.uncertain,
        how=said.how,
        unit="method",
        sections=lambda swatches: (
            ("What each reached", method_table(result, swatches)),
            (
                f"What {result.federation.method.name} loses when the rows of one silo are shuffled",
                contribution_table(result),
            ),
        ),
    )
    write_report(runs, path, story=story)


def table_rows(result: StudyResult) -> Iterator[list[object]]:
    """One line per method: step size, costs up to the chosen round, each metric and where its interval begins, ends."""
    heads = [head for metric in result.metrics for head in (metric, f"{metric}_low", f"{metric}_high")]
    yield ["method", "step_size", "seeds", *_COSTS.values(), *heads]
    for name in result.names:
        made = result.made_by(name)
        own: list[object] = ["", 1, "", "", ""]
        if made is not None:
            own = [made.step, len(made.runs), *(cost(made, key) for key in _COSTS)]
        cells: list[object] = []
        for metric in result.metrics:
            found = result.judged.of(name, metric)
            cells += ["", "", ""] if found is None else [found.value, found.low, found.high]
        yield [name, *own, *cells]


def print_table(result: StudyResult, console: Console) -> None:
    """The main metric with its interval, others as they fit, and costs."""
    others = [metric for metric in sort_metrics(result.metrics) if metric != result.metric]
    print_as_fits((_table(result, others[:count]) for count in range(len(others), -1, -1)), console)


def _table(result: StudyResult, others: list[str]) -> Table:
    table = Table(title=f"On the same {human_count(result.judged.rows)} test rows: means over {result.seeds} seeds")
    table.add_column("trained", overflow="fold")
    for heading in (metric_title(result.metric), "95%", *(metric_title(metric) for metric in others), "rounds", "sent"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in result.names:
        made, main = result.made_by(name), result.judged.of(name, result.metric)
        costs = ["", ""] if made is None else [human_count(cost(made, "round")), human_bytes(cost(made, "bytes"))]
        values = (_value(result.judged.of(name, metric)) for metric in others)
        table.add_row(Text(visible(name)), _value(main), _reach(main), *values, *costs)
    return table


def method_table(result: StudyResult, swatches: Mapping[str, str]) -> str:
    """For the page: one row per method, each metric with its interval under it, and the costs."""
    headings = ["Trained", *(escape(metric_title(metric)) for metric in result.metrics)]
    headings += ["Step size", "Rounds", "Bytes sent", "Simulated time", "Wall time"]
    rows = []
    for name in result.names:
        made = result.made_by(name)
        cells = [_with_reach(result.judged.of(name, metric)) for metric in result.metrics]
        costs = ["-"] * 5 if made is None else [
            escape(made.step), human_count(cost(made, "round")), human_bytes(cost(made, "bytes")),
            human_seconds(cost(made, "sim_seconds")), human_seconds(cost(made, "wall_seconds")),
        ]  # fmt: skip
        rows.append([f"{swatches.get(name, '')}{escape(name)}", *cells, *costs])
    return html_table(headings, rows)


def contribution_table(result: StudyResult) -> str:
    """What the federation loses when the rows of one silo are shuffled; empty where that was not tried."""
    rows = [
        [escape(silo), f"{human_number(found.value)}<small>{_reach(found)}</small>"]
        for silo in result.silos
        if (found := result.contribution(silo)) is not None
    ]
    return html_table(["Silo", f"{escape(metric_title(result.metric))} lost"], rows) if rows else ""


def _value(found: Interval | None) -> str:
    return "-" if found is None else human_number(found.value)


def _reach(found: Interval | None) -> str:
    return "" if found is None else f"{human_number(found.low)} to {human_number(found.high)}"


def _with_reach(found: Interval | None) -> str:
    """On the page, where fifteen columns share the width: a digit less than in table.csv and the terminal."""
    if found is None:
        return "-"
    return f"{found.value:.4g}<small>{found.low:.3g}&nbsp;to {found.high:.3g}</small>"
