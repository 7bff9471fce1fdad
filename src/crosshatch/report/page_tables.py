"""The report's tables: what the runs reached, their cost to targets, how their configs differ, where they ran."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from crosshatch.report.compare import Comparison, Outcome, remark
from crosshatch.report.measures import Target, metric_title
from crosshatch.report.runs import Run
from crosshatch.report.units import human_bytes, human_count, human_flops, human_number, human_seconds


def outcome_table(result: Comparison, metrics: Sequence[str], swatches: Sequence[str]) -> str:
    """One row per run: final value of each metric with the best one under it, and the totals."""
    headings = ["Run", *(metric_title(metric) for metric in metrics)]
    headings += ["Rounds", "Bytes sent", "Messages", "Simulated time", "Wall time"]
    rows = [
        [_run_name(outcome, swatch), *(_metric_cell(outcome, metric) for metric in metrics),
         human_count(outcome.rounds), human_bytes(outcome.bytes), human_count(outcome.messages),
         human_seconds(outcome.sim_seconds), human_seconds(outcome.wall_seconds)]
        for outcome, swatch in zip(result.outcomes, swatches, strict=True)
    ]  # fmt: skip
    return _table([escape(heading) for heading in headings], rows)


def target_table(result: Comparison, swatches: Sequence[str]) -> str:
    """Rounds, bytes and simulated time to each target; empty without targets."""
    if not result.targets:
        return ""
    tops = "".join(f'<th colspan="3" class="span">{escape(_target_words(t))}</th>' for t in result.targets)
    heads = "<th>rounds</th><th>bytes</th><th>simulated time</th>" * len(result.targets)
    rows = ""
    for outcome, swatch in zip(result.outcomes, swatches, strict=True):
        cells = "".join(_arrival_cells(outcome, target) for target in result.targets)
        rows += f"<tr><th>{_run_name(outcome, swatch)}</th>{cells}</tr>"
    return (
        f'<div class="scroll"><table id="targets"><thead><tr><th rowspan="2">Run</th>{tops}</tr>'
        f"<tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def difference_table(runs: Sequence[Run]) -> str:
    """Settings that are not equal in all configs; empty for one run or equal configs."""
    flat = [dict(_flatten(run.config)) for run in runs]
    keys = [key for key in dict.fromkeys(key for config in flat for key in config)
            if any(config.get(key) != flat[0].get(key) for config in flat)]  # fmt: skip
    # a name tells a run apart and decides nothing
    keys = [key for key in keys if key not in ("run.name", "run.out")]
    if not keys:
        return ""
    rows = [[f"<code>{escape(key)}</code>", *(_setting(config.get(key)) for config in flat)] for key in keys]
    return _table(["Setting", *(escape(run.name) for run in runs)], rows)


def cost_table(runs: Sequence[Run]) -> str:
    """Operations and memory of local steps, by run and silo; empty where no run counted them."""
    rows = [
        [f"{escape(run.name)}<small>{escape(silo)}</small>", human_count(cost.samples), human_flops(cost.step_flops),
         human_bytes(cost.step_memory), human_flops(cost.run_flops)]
        for run in runs for silo, cost in run.facts.cost.items()
    ]  # fmt: skip
    headings = [
        "Run and silo",
        "Samples of a client",
        "Operations per step",
        "Memory per step",
        "Operations, all clients",
    ]
    return _table(headings, rows) if rows else ""


def environment_table(runs: Sequence[Run]) -> str:
    """Seed, threads, precision, strategy of local steps and versions."""
    rows = []
    for run in runs:
        facts = run.facts
        strategy = facts.strategy
        if not isinstance(strategy, str):
            kinds = dict.fromkeys(strategy.values())
            strategy = next(iter(kinds)) if len(kinds) == 1 else "; ".join(f"{k}: {v}" for k, v in strategy.items())
        versions = ", ".join(f"{name} {version}" for name, version in facts.versions.items())
        seed, threads = facts.seed, facts.threads
        values = (run.name, run.algorithm, seed, threads, facts.precision, strategy, versions, run.path.resolve().name)
        rows.append(["-" if value in (None, "") else escape(str(value)) for value in values])
    headings = ["Run", "Algorithm", "Seed", "Threads", "Precision", "Local steps", "Versions", "Directory"]
    return _table(headings, rows, kind="words")


def config_details(run: Run) -> str:
    """The resolved config, verbatim when copied; headings, keys and comments are only coloured."""
    if not run.config_text:
        return ""
    lines = "\n".join(_coloured(line) for line in run.config_text.rstrip("\n").split("\n"))
    return f"<details><summary>config.toml of {escape(run.name)}</summary><pre>{lines}\n</pre></details>"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers") -> str:
    head = "".join(f"<th>{heading}</th>" for heading in headings)
    body = "".join(f"<tr><th>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _run_name(outcome: Outcome, swatch: str) -> str:
    note = remark(outcome)
    return f"{swatch}{escape(outcome.name)}{f'<small>{note}</small>' if note else ''}"


def _metric_cell(outcome: Outcome, metric: str) -> str:
    if metric not in outcome.final:
        return "-"
    value = human_number(outcome.final[metric])
    best = outcome.best.get(metric)
    if best is None:
        return value
    return f"{value}<small>best {human_number(best.value)}, round {human_count(best.round)}</small>"


def _arrival_cells(outcome: Outcome, target: Target) -> str:
    arrival = outcome.arrivals[target.label]
    if arrival is None:
        best = outcome.best.get(target.metric)
        note = f"<small>best {human_number(best.value)}</small>" if best else ""
        return f'<td colspan="3" class="span">not reached{note}</td>'
    return (
        f"<td>{human_count(arrival.round)}</td><td>{human_bytes(arrival.bytes)}</td>"
        f"<td>{human_seconds(arrival.sim_seconds)}</td>"
    )


def _target_words(target: Target) -> str:
    return f"{metric_title(target.metric)} {'at least' if target.higher else 'at most'} {target.value:.4g}"


def _flatten(config: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, value in config.items():
        found += _flatten(value, f"{prefix}{key}.") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return found


def _setting(value: object) -> str:
    text = "-" if value is None else _exact(value) if isinstance(value, float) else str(value)
    return escape(text if len(text) <= 60 else f"{text[:57]}...")


def _exact(value: float) -> str:
    """A setting as one would write it, never rounded: `0.1`, not `0.1000`."""
    return repr(value) if math.isfinite(value) else human_number(value)


def _coloured(line: str) -> str:
    if line.lstrip().startswith("#"):
        return f'<span class="comment">{escape(line)}</span>'
    if line.startswith("["):
        return f'<span class="section">{escape(line)}</span>'
    match = re.match(r"(\s*[\w.\"'-]+)(\s*=.*)", line)
    return f'<span class="setting">{escape(match[1])}</span>{escape(match[2])}' if match else escape(line)
