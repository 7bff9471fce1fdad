"""One HTML page that holds everything it needs: nothing in it loads from anywhere."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from crosshatch.errors import RunError
from crosshatch.report.bars import exchange_bars, link_bars
from crosshatch.report.compare import Comparison, compare_runs
from crosshatch.report.curves import curve_data, metric_order
from crosshatch.report.federation_picture import draw_federation, federation_title
from crosshatch.report.findings import axes_of, chosen_targets, headline
from crosshatch.report.graph_picture import draw_graph, graph_title
from crosshatch.report.measures import Target, metric_title, parse_target
from crosshatch.report.page_tables import (
    config_details,
    cost_table,
    difference_table,
    environment_table,
    outcome_table,
    target_table,
)
from crosshatch.report.palette import Style, run_styles
from crosshatch.report.runs import Run
from crosshatch.report.summary_file import FederationShape
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds

_DASHES = {"solid": "", "dash": "7 3", "dot": "2 3", "dashdot": "7 3 2 3"}


def write_report(runs: Sequence[Run], path: Path | str, targets: Iterable[str | Target] = ()) -> None:
    """The whole report of one or several runs, as one file; an existing one is replaced in a single step.

    >>> from crosshatch import read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = '{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": 0.75}'
    ...     written = Path(folder, "metrics.jsonl").write_text(line)
    ...     write_report([read_run(folder)], Path(folder, "report.html"), ["auc=0.7"])
    ...     "0.75" in Path(folder, "report.html").read_text()
    True
    """
    result = _comparison(runs, targets)
    swatches = [_swatch(style) for style in run_styles(runs)]
    metrics = metric_order(runs)
    bars = link_bars(runs) + exchange_bars(runs)
    differences = difference_table(runs)
    sections = [
        _header(runs, result),
        _curve_section(runs, metrics, swatches),
        _section("What the runs reached" if len(runs) > 1 else "What the run reached",
                 outcome_table(result, metrics, swatches)),
        _section("Cost to reach a target", target_table(result, swatches)),
        _section("Where the bytes went", bars),
        _section("What local steps cost", cost_table(runs)),
        _federations(runs),
        _section("What differs between the configs", differences),
        _section("How it was run", environment_table(runs) + "".join(config_details(run) for run in runs)),
    ]  # fmt: skip
    _write(path, _page(runs, result, "".join(sections)))


def write_plot(runs: Sequence[Run], path: Path | str, targets: Iterable[str | Target] = ()) -> None:
    """Only the curves and the cost to reach the targets, for `crosshatch compare`."""
    result = _comparison(runs, targets)
    swatches = [_swatch(style) for style in run_styles(runs)]
    sections = [
        _header(runs, result),
        _curve_section(runs, metric_order(runs), swatches),
        _section("Cost to reach a target", target_table(result, swatches)),
    ]
    _write(path, _page(runs, result, "".join(sections)))


def _comparison(runs: Sequence[Run], targets: Iterable[str | Target]) -> Comparison:
    """Targets given by the user must be known to every run; those found in the runs are chosen to be."""
    given = [parse_target(item) if isinstance(item, str) else item for item in targets]
    compare_runs(runs, given)
    for run in runs:
        if not run.metric_names:
            raise RunError(f"run '{run.name}' measured nothing: add metrics to [evaluate] and run again")
    return compare_runs(runs, chosen_targets(runs, given))


def _page(runs: Sequence[Run], result: Comparison, body: str) -> str:
    # imported by name and late: plotly has no type hints, and only a written page should pay for it
    plotly: str = importlib.import_module("plotly.offline").get_plotlyjs()
    script = _resource("page.js")
    # only these two scripts may run, whatever a config contains, and nothing may be fetched
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in (plotly, script))
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    data = json.dumps(curve_data(runs, result.targets), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return Template(_resource("page.html")).substitute(
        policy=policy,
        title=escape(headline(runs, result.targets)),
        style=_resource("page.css"),
        body=body,
        data=data,
        plotly=plotly,
        script=script,
    )


def _header(runs: Sequence[Run], result: Comparison) -> str:
    names = ", ".join(run.name for run in runs) if len(runs) <= 8 else f"{len(runs)} runs"
    tiles = ""
    if len(runs) == 1:
        outcome = result.outcomes[0]
        main = metric_order(runs)[0]
        numbers = [(human_number(outcome.final.get(main, float("nan"))), f"final {metric_title(main)}"),
                   (human_count(outcome.rounds), "rounds"), (human_bytes(outcome.bytes), "sent by all parties"),
                   (human_seconds(outcome.sim_seconds), "simulated time")]  # fmt: skip
        tiles = "".join(f'<div class="tile"><b>{value}</b><span>{escape(name)}</span></div>' for value, name in numbers)
        tiles = f'<div class="tiles">{tiles}</div>'
    unfinished = [run.name for run in runs if not run.finished]
    note = f'<p class="note">Not finished: {escape(", ".join(unfinished))}.</p>' if unfinished else ""
    for run in runs:
        if run.facts.diverged is not None:
            note += f'<p class="note">Diverged: {escape(run.name)}, {escape(run.facts.diverged.why)}.</p>'
    return (
        f'<header><p class="eyebrow">Crosshatch report: {escape(names)}</p>'
        f"<h1>{escape(headline(runs, result.targets))}</h1>{note}{tiles}</header>"
    )


def _curve_section(runs: Sequence[Run], metrics: Sequence[str], swatches: Sequence[str]) -> str:
    options = "".join(f'<option value="{escape(name)}">{escape(metric_title(name))}</option>' for name in metrics)
    tabs = "".join(
        f'<label><input type="radio" name="axis" value="{axis.key}"{" checked" if axis.key == "round" else ""}>'
        f"<span>{axis.tab}</span></label>"
        for axis in axes_of(runs)
    )
    legend = "".join(
        f'<button type="button" aria-pressed="true">{swatch}{escape(run.label)}</button>'
        for run, swatch in zip(runs, swatches, strict=True)
    )
    return (
        '<section><h2 id="curve-title"></h2><div class="controls">'
        f'<label>Show <select id="metric">{options}</select></label>'
        f'<fieldset class="tabs"><legend>Against</legend>{tabs}</fieldset>'
        '<label><input type="checkbox" id="log"> logarithmic</label></div>'
        f'<div class="legend">{legend}</div><div id="curves"></div>'
        "<noscript>The curves need JavaScript; all tables below do not.</noscript></section>"
    )


def _federations(runs: Sequence[Run]) -> str:
    """Runs of the same federation share a picture."""
    names: dict[FederationShape, list[str]] = {}
    for run in runs:
        names.setdefault(run.facts.federation, []).append(run.name)
    pictures = [(_title(shape), _draw(shape), who) for shape, who in names.items() if shape.silos]
    body = "".join(f"<h3>{escape(', '.join(who))}: {escape(title)}</h3>{svg}" for title, svg, who in pictures)
    return _section("The federation" if len(pictures) == 1 else "The federations", body)


def _title(shape: FederationShape) -> str:
    return federation_title(shape) if shape.graph is None else graph_title(shape, shape.graph)


def _draw(shape: FederationShape) -> str:
    return draw_federation(shape) if shape.graph is None else draw_graph(shape, shape.graph)


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _swatch(style: Style) -> str:
    return (
        f'<svg class="swatch" viewBox="0 0 30 12" aria-hidden="true"><path d="M0 6H30" stroke="{style.color}" '
        f'stroke-width="{style.width:g}" stroke-dasharray="{_DASHES[style.dash]}"/></svg>'
    )


def _resource(name: str) -> str:
    return (files("crosshatch.report") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _write(path: Path | str, text: str) -> None:
    """Into a temporary neighbour first, so that a reader never sees half a page."""
    path = Path(path)
    if path.is_dir():
        raise RunError(f"{path} is a folder, the page is a file: name it, for example {path / 'report.html'}")
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror}): choose an existing, writable folder") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror}): free some space or choose another folder") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
