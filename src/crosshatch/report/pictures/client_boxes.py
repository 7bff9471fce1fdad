"""How a metric spreads over clients: one box per run and silo as an inline SVG, and the numbers under it.

Places are percentages of the width, so that the picture fits any screen and its letters keep their size.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from crosshatch.report.measures import metric_title
from crosshatch.report.page_tables import html_table
from crosshatch.report.palette import run_styles
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import ClientSpread, SiloClients, WorstClient
from crosshatch.report.units import human_count, human_number, with_deviation

MOST_ROWS = 20  # of runs and silos: more fill a screen, and make the page heavy
_ROW, _TOP, _BOTTOM = 46, 4, 26  # pixels
_LEFT, _RIGHT = 4.0, 96.0  # percent, so that the outermost numbers are not cut
_INTERVALS = 6  # between ticks, at most
_LONGEST = 24  # letters of a name in the picture


@dataclass(frozen=True)
class _Row:
    """A silo of a run."""

    run: str
    name: str
    color: str
    silo: SiloClients


def client_boxes(runs: Sequence[Run], metrics: Sequence[str]) -> str:
    """A picture for each metric, all but the first to be opened, and a table; empty where clients were not measured."""
    every = list(_rows(runs))
    rows = every[:MOST_ROWS]
    shown = [metric for metric in metrics if _measured(rows, metric)]
    if not shown:
        return ""
    pictures = _picture(_measured(rows, shown[0]), shown[0])
    for metric in shown[1:]:
        picture = _picture(_measured(rows, metric), metric)
        pictures += f"<details><summary>{escape(metric_title(metric))}</summary>{picture}</details>"
    note = (
        "The common model on the test samples of every client by itself. Boxes hold the middle half of the clients, "
        "lines reach to the lowest and the highest, circles are the worst."
    )
    note += " Of several seeds the first is shown." if any(run.seeds for run in runs) else ""
    note += f" {len(every) - len(rows)} more are in the summaries." if len(every) > len(rows) else ""
    return f'<h3>{escape(_finding(rows, shown[0]))}</h3>{pictures}{_table(rows, shown)}<p class="note">{note}</p>'


def _rows(runs: Sequence[Run]) -> Iterator[_Row]:
    for run, style in zip(runs, run_styles(runs), strict=True):
        for name, silo in run.facts.per_client.silos.items():
            yield _Row(run.name, name, style.color, silo)


def _measured(rows: Sequence[_Row], metric: str) -> list[tuple[_Row, ClientSpread]]:
    return [(row, row.silo.metrics[metric]) for row in rows if metric in row.silo.metrics]


def _finding(rows: Sequence[_Row], metric: str) -> str:
    """Says where the spread is widest, and who is worst there."""
    row, spread = max(_measured(rows, metric), key=lambda item: item[1].max - item[1].min)
    reach = f"{human_number(spread.min)} to {human_number(spread.max)}"
    worst = f", worst at {_who(spread.worst[0])}" if spread.worst else ""
    title = metric_title(metric)
    return f"{title[0].upper()}{title[1:]} of the clients of {row.name} in {row.run}: {reach}{worst}"


def _who(client: WorstClient) -> str:
    return f"{client.client} ({client.value_of_column})" if client.value_of_column else client.client


def _picture(drawn: Sequence[tuple[_Row, ClientSpread]], metric: str) -> str:
    ticks = tick_values(min(spread.min for _, spread in drawn), max(spread.max for _, spread in drawn))
    bottom = _TOP + _ROW * len(drawn)

    def at(value: float) -> str:
        return f"{_LEFT + (_RIGHT - _LEFT) * (value - ticks[0]) / (ticks[-1] - ticks[0]):.2f}%"

    grid = "".join(
        f'<line class="grid" x1="{at(tick)}" x2="{at(tick)}" y1="{_TOP}" y2="{bottom}"/>'
        f'<text class="tick" x="{at(tick)}" y="{bottom + 18}">{tick:.6g}</text>'
        for tick in ticks
    )
    boxes = "".join(_box(row, spread, _TOP + _ROW * i, at) for i, (row, spread) in enumerate(drawn))
    return (
        f'<svg class="clients" height="{bottom + _BOTTOM}" role="img" '
        f'aria-label="{escape(metric_title(metric))} over clients">{grid}{boxes}</svg>'
    )


def _box(row: _Row, spread: ClientSpread, top: float, at: Callable[[float], str]) -> str:
    middle = top + 31
    circles = "".join(
        f'<circle class="worst" cx="{at(one.value)}" cy="{middle}" r="3.5" stroke="{row.color}">'
        f"<title>{escape(_who(one))}: {human_number(one.value)}, {human_count(one.samples)} samples</title></circle>"
        for one in spread.worst
        if spread.min <= one.value <= spread.max
    )
    width = float(at(spread.upper_quartile)[:-1]) - float(at(spread.lower_quartile)[:-1])
    return (
        f'<text x="{_LEFT}%" y="{top + 15}">{escape(_short(row.run))}: {escape(_short(row.name))}, '
        f"{human_count(spread.clients)} clients</text>"
        f'<line class="reach" x1="{at(spread.min)}" x2="{at(spread.max)}" y1="{middle}" y2="{middle}"/>'
        f'<rect class="box" x="{at(spread.lower_quartile)}" y="{middle - 9}" width="{width:.2f}%" height="18" '
        f'fill="{row.color}"/>'
        f'<line class="median" x1="{at(spread.median)}" x2="{at(spread.median)}" y1="{middle - 9}" y2="{middle + 9}"/>'
        f"{circles}"
    )


def _short(name: str) -> str:
    """Of a name as much as fits on a narrow screen; the table has all of it."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def tick_values(low: float, high: float) -> list[float]:
    """Round numbers, the first at or below `low` and the last at or above `high`, seven at most.

    >>> tick_values(0.71, 0.98), tick_values(3.0, 3.0)
    ([0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0], [2.0, 3.0, 4.0])
    """
    if not high > low:
        return [low - 1, low, low + 1]
    magnitude = 10.0 ** math.floor(math.log10((high - low) / _INTERVALS))
    for step in (factor * magnitude for factor in (1, 2, 5, 10, 20)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if last - first <= _INTERVALS:
            return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
    raise AssertionError("twenty times the magnitude is more than enough")


def _table(rows: Sequence[_Row], metrics: Sequence[str]) -> str:
    headings = ["Run and silo", "Clients", *(f"{escape(metric_title(metric))}, mean" for metric in metrics)]
    cells = [
        [f"{escape(row.run)}<small>{escape(row.name)}</small>", human_count(row.silo.measured)
         + _left_out(row.silo.too_small, "too small") + _left_out(row.silo.one_label, "with one label"),
         *(_cell(row.silo.metrics.get(metric)) for metric in metrics)]
        for row in rows
    ]  # fmt: skip
    return html_table(headings, cells)


def _cell(spread: ClientSpread | None) -> str:
    if spread is None:
        return "-"
    lines = [f"median {human_number(spread.median)}", f"{human_number(spread.min)} to {human_number(spread.max)}"]
    lines += [f"worst: {escape(_who(spread.worst[0]))}"] if spread.worst else []
    return with_deviation(spread.mean, spread.deviation) + "".join(f"<small>{line}</small>" for line in lines)


def _left_out(count: int, why: str) -> str:
    return f"<small>{human_count(count)} {why}</small>" if count else ""
