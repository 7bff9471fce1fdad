"""The table of a sweep: one line per point, means and deviations over its seeds; on the terminal and as CSV.

And what a sweep's page says: which point was chosen, by what, and how many others are as good up to the noise.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.errors import visible
from crosshatch.report.measures import COST_KEYS, metric_title, sort_metrics
from crosshatch.report.pictures.page_header import Story
from crosshatch.report.pooled import deviation
from crosshatch.report.printed_tables import print_as_fits, print_line
from crosshatch.report.rows_apart import looked, rows_apart
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds, with_deviation
from crosshatch.sweeps.course import SweepOutcome
from crosshatch.sweeps.grid import short_keys
from crosshatch.sweeps.results import PointResult
from crosshatch.sweeps.sweep import Sweep
from crosshatch.task.directions import VALIDATION

ERRORS = 2.0  # standard errors of a difference that count as noise
_COST_TITLES = {"round": "round", "bytes": "sent", "sim_seconds": "simulated"}
_COST_WORDS: dict[str, Callable[[float], str]] = {
    "round": lambda value: human_count(round(value)),
    "bytes": human_bytes,
    "sim_seconds": human_seconds,
}
_CHOSEN = "chosen"


def sweep_story(sweep: Sweep, outcome: SweepOutcome) -> Story:
    """For a sweep that is done; test rows are not spoken of."""
    seeds = len(sweep.seeds.numbers)
    each = f"{seeds} runs each, one per seed" if seeds > 1 else "a run each"
    eyebrow = f"Crosshatch sweep: {len(sweep.points)} points, {each}"
    best, choice = outcome.best, outcome.choice
    how = (
        f"Points were compared by {choice.title if choice.metric else choice.text}, means over the seeds; test rows "
        "choose nothing."
    )
    if best is None or choice.metric is None:
        return Story("No point was chosen", eyebrow, how=how, unit="point")
    said = _as_good(outcome, best, choice.metric, seeds)
    return Story(f"Chosen: {chosen_words(outcome)}", eyebrow, *said, how=how, unit="point")


def chosen_words(outcome: SweepOutcome) -> str:
    """The point that was chosen, and what it reached."""
    best, choice = outcome.best, outcome.choice
    assert best is not None
    assert choice.metric is not None
    return f"{best.point.name or 'the config'} ({choice.title} {_with_deviation(best.values(choice.metric))})"


def _as_good(outcome: SweepOutcome, best: PointResult, metric: str, seeds: int) -> tuple[list[str], list[str]]:
    """What is certain of the other points, and what is not."""
    others = [one for one in outcome.ranked if one is not best and one.values(metric)]
    if not others:
        return [], []
    if seeds < 2:
        return [], ["With one seed per point it cannot be told how much of the difference is chance."]
    within = [one for one in others if _gap(best, one, metric) <= ERRORS * _error(best, one, metric)]
    if not within:
        return [f"All {len(others)} other points are worse by more than {ERRORS:g} standard errors over the seeds."], []
    names = ", ".join(one.point.name for one in within[:3]) + (" and others" if len(within) > 3 else "")
    gap = human_number(_gap(best, within[0], metric))
    text = f"{len(within)} of {len(others)} other points are as good up to the noise over the seeds: {names}"
    return [], [f"{text} (the next one is {gap} behind, {ERRORS:g} standard errors are "
                f"{human_number(ERRORS * _error(best, within[0], metric))})."]  # fmt: skip


def _gap(best: PointResult, other: PointResult, metric: str) -> float:
    return abs(fmean(best.values(metric)) - fmean(other.values(metric)))


def _error(best: PointResult, other: PointResult, metric: str) -> float:
    both = (best.values(metric), other.values(metric))
    return math.sqrt(sum(deviation(values) ** 2 / len(values) for values in both))


def table_rows(sweep: Sweep, outcome: SweepOutcome) -> Iterator[list[object]]:
    """All that was measured at the evaluations that count, in full; times by the wall clock are left out."""
    metrics = [metric for metric in _measured(outcome) if metric != outcome.choice.metric]
    measured = [*([outcome.choice.metric] if outcome.choice.metric else []), *metrics]
    keys = [*dict.fromkeys([*measured, *_COST_TITLES])]
    heads = [head for key in keys for head in (key, f"{key}_deviation")]
    states = ("finished", "diverged", "refused", "failed")
    yield ["point", *(axis.key for axis in sweep.axes), _CHOSEN, "seeds", *states, *heads, "remark", "why"]
    for result in outcome.results:
        ended: list[str] = [run.ended.state for run in result.runs]
        numbers: list[object] = []
        for key in keys:
            values = result.values(key)
            numbers += [fmean(values), deviation(values)] if values else ["", ""]
        chosen = "yes" if result is outcome.best else "no"
        counts = [len(sweep.seeds.numbers), *(ended.count(state) for state in states)]
        yield [result.point.name, *result.point.values, chosen, *counts, *numbers, result.remark, result.why]


def print_table(sweep: Sweep, outcome: SweepOutcome, console: Console) -> None:
    """What the choice goes by, then test metrics, as many as fit into the console, and costs if they fit."""
    choice = outcome.choice
    metrics = [metric for metric in _measured(outcome) if metric != choice.metric and not metric.startswith(VALIDATION)]
    costs = [key for key in ("round", "bytes") if key != choice.metric]
    shown = [(metrics[:count], costs) for count in range(max(1, len(metrics)), 0, -1)]
    shown += [(metrics[:1], costs[:count]) for count in range(len(costs) - 1, -1, -1)]
    tables = [partial(_table, sweep, outcome, *columns) for columns in shown]
    print_as_fits((make() for make in (*tables, partial(tables[-1], narrow=True))), console)
    firsts = [next((one.run for one in result.runs if one.run is not None), None) for result in outcome.results]
    runs = [run for run in firsts if run is not None]
    lines = [looked(runs, [choice.target])] if choice.target is not None else []
    for line in (*lines, *(f"note: {note}" for note in rows_apart(runs).notes)):
        print_line(console, line, whole=False)


def _table(
    sweep: Sweep, outcome: SweepOutcome, metrics: Sequence[str], costs: Sequence[str], *, narrow: bool = False
) -> Table:
    choice, count = outcome.choice, len(sweep.seeds.numbers)
    table = Table(title=f"{len(sweep.points)} points" + (f": means over {count} seeds" if count > 1 else ""))
    for key in short_keys(sweep.axes):
        table.add_column(Text(key), overflow="fold")
    metric, titles = "-" if choice.metric is None else choice.title, [metric_title(name) for name in metrics]
    on_test = [f"test {one.removeprefix('test ')}" if name != "train_loss" else one
               for name, one in zip(metrics, titles, strict=True)]  # fmt: skip
    for heading in (metric, *on_test, *(_COST_TITLES[key] for key in costs)):
        table.add_column(Text(heading.replace(" ", "\n") if narrow else heading), justify="right", no_wrap=True)
    table.add_column("remarks", overflow="fold")
    for result in outcome.results:
        chosen = result is outcome.best
        remarks = ", ".join(word for word in (_CHOSEN if chosen else "", result.remark) if word)
        values = [_mean(result, key) for key in (choice.metric, *metrics, *costs)]
        table.add_row(
            *(Text(visible(cell)) for cell in (*result.point.values, *values, remarks)),
            style="bold" if chosen else None,
        )
    return table


def _measured(outcome: SweepOutcome) -> tuple[str, ...]:
    """Names of all that was measured, the most telling first."""
    found = dict.fromkeys(key for result in outcome.results for row in result.rows for key in row)
    return sort_metrics(tuple(key for key in found if key not in COST_KEYS))


def _mean(result: PointResult, key: str | None) -> str:
    values = [] if key is None else result.values(key)
    if not values:
        return "-"
    if key in _COST_TITLES:
        return _COST_WORDS[key](fmean(values))
    return _with_deviation(values)


def _with_deviation(values: Sequence[float]) -> str:
    return with_deviation(fmean(values), deviation(values) if len(values) > 1 else None)
