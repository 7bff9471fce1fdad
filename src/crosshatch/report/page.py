"""One HTML page that holds everything it needs: nothing in it loads from anywhere."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from crosshatch.errors import RunError
from crosshatch.report.compare import Comparison, compare_runs
from crosshatch.report.curves import curve_data, metric_order
from crosshatch.report.findings import axes_of, chosen_targets, headline
from crosshatch.report.measures import Target, metric_title, parse_target
from crosshatch.report.page_tables import (
    config_details,
    difference_table,
    environment_table,
    leakage_table,
    outcome_table,
    seed_details,
    target_table,
)
from crosshatch.report.palette import Style, run_styles
from crosshatch.report.pictures.page_header import Story, page_header
from crosshatch.report.pictures.run_sections import byte_tables, client_table, decision_table, federation_tables
from crosshatch.report.pooled import singles
from crosshatch.report.runs import Run, add_remark, directions_of
from crosshatch.runs.files import write_whole

_MOST_CONFIGS = 200_000  # letters: beyond these many runs would make a page heavy
# A longer legend scrolls.
_LONG_LEGEND = 24


def write_report(
    runs: Sequence[Run],
    path: Path | str,
    targets: Iterable[str | Target] = (),
    notes: Sequence[str] = (),
    story: Story | None = None,
) -> None:
    """The whole report of one or several runs, as one file; an existing one is replaced in a single step.

    `notes` are said at its beginning. A `story` has its own headline.

    >>> import tempfile
    >>> from crosshatch import read_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = '{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": 0.75}'
    ...     written = Path(folder, "metrics.jsonl").write_text(line)
    ...     write_report([read_run(folder)], Path(folder, "report.html"), ["auc=0.7"])
    ...     "0.75" in Path(folder, "report.html").read_text()
    True
    """
    given = [parse_target(item, directions_of(runs)) if isinstance(item, str) else item for item in targets]
    compare_runs(runs, given)  # every run must know those that the user gives; those found in the runs are chosen to be
    for run in runs:
        if not run.metric_names:
            raise RunError(f"run '{run.name}' measured nothing: add metrics to [evaluate] and run again")
    result = compare_runs(runs, chosen_targets(runs, given))
    swatches = [_swatch(style) for style in run_styles(runs)]
    metrics = metric_order(runs)
    unit = "run" if story is None else story.unit
    before = () if story is None else story.sections({r.name: s for r, s in zip(runs, swatches, strict=True)})
    table = target_table(result, swatches)
    reached = "" if before else outcome_table(result, metrics, swatches, unit)  # a story's own table says that
    sections = [
        page_header(runs, result, notes, story),
        *(_section(title, body) for title, body in before),
        _curve_section(runs, result, metrics, swatches),
        _section(f"What the {unit}s reached" if len(runs) > 1 else "What the run reached",
                 reached + seed_details(result, metrics)),
        _section("Deciding by it", decision_table(runs, result, swatches)),
        _section("How clients differ", client_table(runs, metrics)),
        _section("Cost to reach a target", table and f'{table}<p class="note">{escape(result.looked)}</p>'),
        _section("Where the bytes went", byte_tables(runs)),
        _section("What was told of labels", leakage_table(singles(runs))),
        _section("Who took part", federation_tables(runs)),
        _section("What differs between the configs", difference_table(runs)),
        _section("How it was run", environment_table(singles(runs)) + _configs(runs)),
    ]  # fmt: skip
    title = headline(runs, result.targets) if story is None else story.headline
    _write(path, _page(runs, result, "".join(sections), title))


def _page(runs: Sequence[Run], result: Comparison, body: str, title: str) -> str:
    script = _resource("plot.js") + _resource("page.js")
    # only this script may run, whatever a config contains, and nothing may be fetched
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"
    data = json.dumps(curve_data(runs, result.targets), allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return Template(_resource("page.html")).substitute(
        policy=policy,
        title=escape(title),
        style=_resource("page.css"),
        body=body,
        data=data,
        script=script,
    )


def _curve_section(runs: Sequence[Run], result: Comparison, metrics: Sequence[str], swatches: Sequence[str]) -> str:
    options = "".join(f'<option value="{escape(name)}">{escape(metric_title(name))}</option>' for name in metrics)
    tabs = "".join(
        f'<label><input type="radio" name="axis" value="{axis.key}"{" checked" if axis.key == "round" else ""}>'
        f"<span>{axis.tab}</span></label>"
        for axis in axes_of(runs)
    )
    hint = "click to hide, double-click to see it alone"
    labels = [add_remark(run.label, one.tested) for run, one in zip(runs, result.outcomes, strict=True)]
    # those of other test rows are not drawn beside these: they may be looked at by themselves
    tested = [one.tested for one in result.outcomes]
    common = max(tested, key=lambda mark: (tested.count(mark), -tested.index(mark)))
    legend = "".join(
        f'<button type="button" aria-pressed="{str(mark == common).lower()}" title="{hint}">{swatch}{escape(label)}'
        "</button>"
        for label, swatch, mark in zip(labels, swatches, tested, strict=True)
    )
    apart = "" if len(set(tested)) == 1 else (
        '<p class="note">Curves of other test rows cannot be compared: click one to see those of its rows alone.</p>'
    )  # fmt: skip
    words = {"differ": "where curves differ", "all": "all", "log": "all, logarithmic"}
    if len(runs) == 1:  # it is shown whole: where it differs from others there are none
        del words["differ"]
    ranges = "".join(f'<option value="{key}">{word}</option>' for key, word in words.items())
    seeds = any(run.seeds for run in runs)
    bands = '<p class="note">Lines are means over seeds; bands go from the lowest to the highest.</p>' if seeds else ""
    return Template(_resource("curves.html")).substitute(
        options=options, tabs=tabs, ranges=ranges, many=" many" if len(runs) > _LONG_LEGEND else "",
        legend=legend, notes=apart + bands,
    )  # fmt: skip


def _configs(runs: Sequence[Run]) -> str:
    """Each config as it is; where they are too many the first of them, the others differ in what a table shows."""
    parts: list[str] = []
    room = _MOST_CONFIGS
    for run in runs:
        room -= len(run.config_text)
        parts.append(config_details(run) if room > 0 or not parts else "")
    left = parts.count("") - sum(not run.config_text for run in runs)
    note = f'<p class="note">{left} more are in their run directories.</p>' if left > 0 else ""
    return "".join(parts) + note


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _swatch(style: Style) -> str:
    return (
        f'<svg class="swatch" viewBox="0 0 30 12" aria-hidden="true"><path d="M0 6H30" stroke="{style.color}" '
        f'stroke-width="{style.width:g}" stroke-dasharray="{style.dash}"/></svg>'
    )


def _resource(name: str) -> str:
    return (files("crosshatch.report") / name).read_text(encoding="utf-8")


def _write(path: Path | str, text: str) -> None:
    """In one step, so that a reader never sees half a page."""
    path = Path(path)
    if path.is_dir():
        raise RunError(f"{path} is a folder, the page is a file: name it, for example {path / 'report.html'}")
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise RunError(f"cannot write {path} ({error.strerror}): choose a folder that is there and has space") from None
