"""The report's tables: what the runs reached, their cost to targets, how their configs differ, where they ran."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape

from crosshatch.report.compare import Arrival, ComparedRun, Comparison, remark, seconds_apart
from crosshatch.report.measures import Target, metric_title
from crosshatch.report.runs import Run
from crosshatch.report.units import (
    human_bytes,
    human_count,
    human_number,
    human_range,
    human_seconds,
    with_deviation,
    workers_line,
)
from crosshatch.runs.tables.overrides import flat_tables

_TAGS = re.compile(r"<[^>]*>")
_MOST_SETTINGS = 6  # beside each other
_MANY_COLUMNS = 9
_MOST_COLUMNS = 16  # that fit on a wide screen
_MOST_NAMES = 4  # of runs in one cell


def outcome_table(result: Comparison, metrics: Sequence[str], swatches: Sequence[str], unit: str = "run") -> str:
    """One row per run: final value of each metric, that of the round validation rows chose under it, and the totals."""
    headings = [unit.capitalize(), *(metric_title(metric) for metric in metrics)]
    launched = any(not math.isnan(outcome.real_seconds) for outcome in result.outcomes)
    headings += ["Rounds", "Bytes sent", "Messages", "Simulated time", "Wall time"]
    headings += ["Real time of the processes"] if launched else []
    rows = [
        [run_name(outcome, swatch), *(_metric_cell(outcome, metric) for metric in metrics),
         human_count(outcome.rounds) + (_at_chosen(human_count(outcome.chosen["round"])) if outcome.chosen else ""),
         human_bytes(outcome.bytes), human_count(outcome.messages),
         _apart(outcome, human_seconds(outcome.sim_seconds)), human_seconds(outcome.wall_seconds),
         *([human_seconds(real) if math.isfinite(real := outcome.real_seconds) else "simulated"] if launched else [])]
        for outcome, swatch in zip(result.outcomes, swatches, strict=True)
    ]  # fmt: skip
    note = '<p class="note">Chosen: at the round that was best on the validation rows; its model is in best_model.</p>'
    table = html_table([escape(heading) for heading in headings], rows)
    return table + (note if any(outcome.chosen for outcome in result.outcomes) else "")


def seed_details(result: Comparison, metrics: Sequence[str]) -> str:
    """What each seed reached, to be opened; empty where no runs were taken together."""
    seeds = tuple(one for outcome in result.outcomes for one in outcome.seeds)
    if not seeds:
        return ""
    table = outcome_table(replace(result, outcomes=seeds), metrics, [""] * len(seeds))
    return f"<details><summary>Each of the {len(seeds)} runs, one per seed, by itself</summary>{table}</details>"


def target_table(result: Comparison, swatches: Sequence[str]) -> str:
    """Rounds, bytes and simulated time to each target; empty without targets."""
    if not result.targets:
        return ""
    costs = ("rounds", "bytes", "simulated time")
    headings = ["Trained", *(f"{escape(_target_words(t))}: {cost}" for t in result.targets for cost in costs)]
    rows = [
        [run_name(outcome, swatch), *(cell for target in result.targets for cell in _arrival_cells(outcome, target))]
        for outcome, swatch in zip(result.outcomes, swatches, strict=True)
    ]
    return html_table(headings, rows)


def difference_table(runs: Sequence[Run]) -> str:
    """Settings that are not equal in all configs, a line per run, or per setting where these are many and runs few."""
    flat = [flat_tables(run.config) for run in runs]
    keys = [key for key in dict.fromkeys(key for config in flat for key in config)
            if any(config.get(key) != flat[0].get(key) for config in flat)]  # fmt: skip
    # a name tells a run apart and decides nothing
    keys = [key for key in keys if key not in ("run.name", "run.out")]
    if not keys:
        return ""
    headings = ["Trained", *(f"<code>{escape(key)}</code>" for key in keys)]
    rows = [[escape(run.name), *(_setting(config.get(key)) for key in keys)]
            for run, config in zip(runs, flat, strict=True)]  # fmt: skip
    return html_table(headings, rows, most=_MOST_SETTINGS + 1)


def leakage_table(runs: Sequence[Run]) -> str:
    """Equations about labels that one silo holds, by run; empty where no run counted them."""
    rows = []
    for run in runs:
        found = run.facts.leakage
        if found is None:
            continue
        notes = [
            "all labels given in clear"
            if found.in_clear
            else f"batches of {human_count(found.rows_per_batch)} and more",
            "leakage accepted" if found.accepted else "",
            f"{human_count(found.rows_left_out)} rows left out" if found.rows_left_out else "",
            "" if found.ledger else "no ledger: other runs are not counted",
        ]
        counts = (found.labels, found.equations, found.before, found.with_all_runs, found.most)
        rows.append([escape(run.name), *map(human_count, counts), escape("; ".join(filter(None, notes)))])
    headings = ["Run", "Labels", "Equations of the run", "Before it", "Together", "At most", "Remarks"]
    return html_table(headings, rows) if rows else ""


def environment_table(runs: Sequence[Run]) -> str:
    """Seed, threads, precision, strategy of local steps and versions."""
    found: list[tuple[str, list[str]]] = []
    seeds: dict[str, list[str]] = {}
    for run in runs:
        facts = run.facts
        strategy = facts.strategy
        if not isinstance(strategy, str):
            kinds = dict.fromkeys(strategy.values())
            strategy = next(iter(kinds)) if len(kinds) == 1 else "; ".join(f"{k}: {v}" for k, v in strategy.items())
        versions = ", ".join(f"{name} {version}" for name, version in facts.versions.items())
        threads = workers_line(facts.workers) if facts.workers else facts.threads
        values = (run.algorithm, threads, facts.precision, strategy, versions)
        cells = ["-" if value in (None, "") else escape(str(value)) for value in values]
        found.append((run.name, cells))
        seeds.setdefault(str(cells), []).append("-" if facts.seed is None else str(facts.seed))
    rows = [
        [names, cells[0], escape(", ".join(dict.fromkeys(seeds[str(cells)]))), *cells[1:]]
        for names, cells in _folded(found)
    ]
    headings = ["Run", "Algorithm", "Seed", "Threads", "Precision", "Local steps", "Versions"]
    return html_table(headings, rows, kind="words")


def _folded(rows: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Rows that say the same as one, which names the runs, or says how many they are."""
    groups: dict[str, tuple[list[str], list[str]]] = {}
    for name, cells in rows:
        groups.setdefault(str(cells), ([], cells))[0].append(name)
    return [(escape(names_of(names)), cells) for names, cells in groups.values()]


def names_of(names: Sequence[str], what: str = "runs") -> str:
    """All of them, or how many, where a cell would not hold them."""
    return ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} {what}"


def config_details(run: Run) -> str:
    """The resolved config, verbatim; the page's script colours its headings, keys and comments. Of seeds the first."""
    if not run.config_text:
        return ""
    text, seed = run.config_text.rstrip("\n"), f", seed {run.config['run']['seed'][0]}" if run.seeds else ""
    summary = f"<summary>config.toml of {escape(run.name)}{seed}</summary>"
    return f'<details class="config">{summary}<pre>{escape(text)}\n</pre></details>'


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers", most: int = _MOST_COLUMNS
) -> str:
    """A table of HTML; the first cell of each row names it. Where columns are more than `most`, and more than rows, it
    is turned: a line per heading. A cell knows its heading, which stands before it on a narrow screen."""
    if most < len(headings) > len(rows) + 1:
        headings, *rows = list(zip(headings, *rows, strict=True))
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    kind += " crowded" if len(headings) > _MANY_COLUMNS else ""
    labels = [_TAGS.sub("", heading) for heading in headings]
    body = "".join(
        f"<tr><th>{row[0]}</th>"
        + "".join(f'<td data-label="{label}">{cell}</td>' for label, cell in zip(labels[1:], row[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def run_name(outcome: ComparedRun, swatch: str) -> str:
    note = remark(outcome)
    return f"{swatch}{escape(outcome.name)}{f'<small>{note}</small>' if note else ''}"


def _metric_cell(outcome: ComparedRun, metric: str) -> str:
    if metric not in outcome.final:
        return "-"
    value = _mean(outcome.final[metric], outcome.deviation.get(metric))
    if metric not in outcome.chosen:
        return value
    return f"{value}{_at_chosen(human_number(outcome.chosen[metric]))}"


def _at_chosen(value: str) -> str:
    return f"<small><span>chosen</span> {value}</small>"


def _mean(value: float, spread: float | None) -> str:
    """May be broken before the deviation, and nowhere else."""
    before, sign, after = with_deviation(value, spread).partition(" \N{PLUS-MINUS SIGN} ")
    return f'<span class="mean">{before} {sign.strip()}&nbsp;{after}</span>' if sign else before


def _arrival_cells(outcome: ComparedRun, target: Target) -> tuple[str, str, str]:
    arrival, arrived = outcome.arrivals[target.label], outcome.arrived(target)
    if arrival is None:
        best = outcome.best.get(target.metric)
        note = f"<small>closest {human_number(best.value)}</small>" if best else ""
        words = f"reached by {len(arrived)} of {len(outcome.seeds)} seeds" if arrived else "not reached"
        return f"{words}{note}", "-", "-"
    share = f"<small>{len(arrived)} of {len(outcome.seeds)} seeds</small>" if outcome.seeds else ""
    return (
        _range_cell(human_count, arrival.round, [one.round for one in arrived]) + share,
        _range_cell(human_bytes, arrival.bytes, [one.bytes for one in arrived]),
        _apart(arrival, _range_cell(human_seconds, arrival.sim_seconds, [one.sim_seconds for one in arrived])),
    )


def _apart(of: ComparedRun | Arrival, cell: str) -> str:
    """The cell, with what of the time is computing and what messages where that is known."""
    parts = ", ".join(seconds_apart(of)[1:])
    return f"{cell}<small>{parts}</small>" if parts else cell


def _range_cell(words: Callable[[float], str], middle: float, values: Sequence[float]) -> str:
    between = human_range(words, values)
    return words(middle) + (f"<small>{between[0]} to {between[1]}</small>" if between else "")


def _target_words(target: Target) -> str:
    return f"{metric_title(target.metric)} {'at least' if target.higher else 'at most'} {target.value:.4g}"


def _setting(value: object) -> str:
    """As one would write it, never rounded: `0.1`, not `0.1000`."""
    text = "-" if value is None else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        text = human_number(value)
    return escape(text if len(text) <= 60 else f"{text[:57]}...")
