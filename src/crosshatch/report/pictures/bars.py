"""Where the bytes went: one stacked bar per run, and the numbers under it. Plain HTML, so that it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from crosshatch.report.page_tables import html_table, names_of
from crosshatch.report.palette import NEUTRAL, SHADES
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import Traffic
from crosshatch.report.units import human_bytes, human_count

Parts = Mapping[str, Traffic]


def link_bars(runs: Sequence[Run]) -> str:
    """Bars by kind of link and direction; empty where all went one way."""
    return _bars(runs, lambda run: run.facts.bytes_by_link, "carries")


def exchange_bars(runs: Sequence[Run]) -> str:
    """Bars by exchange; empty where all went in one."""
    return _bars(runs, _exchanges, "takes")


def _exchanges(run: Run) -> Parts:
    parts = run.facts.bytes_by_exchange
    return {name: part if isinstance(part, Traffic) else Traffic(bytes=part) for name, part in parts.items()}


def _bars(runs: Sequence[Run], parts_of: Callable[[Run], Parts], verb: str) -> str:
    alike: dict[str, tuple[list[str], Parts]] = {}
    for run in runs:
        parts = parts_of(run)
        alike.setdefault(str(parts), ([], parts))[0].append(run.name)
    by_run = [(names_of(who, "curves"), parts) for who, parts in alike.values()]
    names = list(dict.fromkeys(name for _, parts in by_run for name in parts))
    largest = max((_total(parts) for _, parts in by_run), default=0.0)
    if len(names) < 2 or largest <= 0:
        return ""
    # the same after six: more kinds than that are told apart by the table
    colors = {name: SHADES[i] if i < len(SHADES) else NEUTRAL for i, name in enumerate(names)}
    bars = "".join(_bar(who, parts, largest, colors) for who, parts in by_run)
    return (
        f"<h3>{escape(_title(by_run, verb))}</h3>"
        f'<div class="bars" aria-hidden="true">{bars}</div>{_table(by_run, colors)}'
    )


def _total(parts: Parts) -> float:
    return sum(part.bytes for part in parts.values())


def _title(by_run: Sequence[tuple[str, Parts]], verb: str) -> str:
    """Says which part dominates in the run that sent most."""
    who, parts = max(by_run, key=lambda item: _total(item[1]))
    name = max(parts, key=lambda key: parts[key].bytes)
    share = round(100 * parts[name].bytes / _total(parts))
    return f"'{name}' {verb} {share}% of the bytes of {who}"


def _bar(who: str, parts: Parts, largest: float, colors: Mapping[str, str]) -> str:
    pieces = "".join(
        f'<i style="width:{100 * part.bytes / largest:.4f}%;background:{colors[name]}" '
        f'title="{escape(name)}: {human_bytes(part.bytes)}"></i>'
        for name, part in parts.items()
        if part.bytes > 0
    )
    return (
        f'<div class="bar-name">{escape(who)}</div>'
        f'<div class="bar">{pieces}<span>{human_bytes(_total(parts))}</span></div>'
    )


def _table(by_run: Sequence[tuple[str, Parts]], colors: Mapping[str, str]) -> str:
    keys = [f'<i class="key" style="background:{color}"></i>{escape(name)}' for name, color in colors.items()]
    rows = [
        [escape(who), *(_cell(parts.get(name), _total(parts)) for name in colors)] for who, parts in by_run
    ]  # fmt: skip
    return html_table(["Trained", *keys], rows)


def _cell(part: Traffic | None, total: float) -> str:
    if part is None or total == 0:
        return "-"
    messages = f"{human_count(part.messages)} messages, " if part.messages else ""
    return f"{human_bytes(part.bytes)}<small>{messages}{100 * part.bytes / total:.0f}%</small>"
