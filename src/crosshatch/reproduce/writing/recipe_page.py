"""The page of a recipe and the index over all, as self-contained HTML that needs no script."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from crosshatch.reproduce.running.folder import TITLE
from crosshatch.reproduce.writing.result import Ours, Reading, RecipeResult, ResultCheck, ResultFactor

CSS = Path(__file__).with_name("page.css")
READINGS = {
    "own": "every method with the best step size of one grid, which is what the papers say",
    "common": "one step size for all, the largest with which the largest Q still arrives",
}


def recipe_page(result: RecipeResult, svg: str | None) -> str:
    """All about a recipe. `svg` is its figure; None where there is none."""
    title = f"{result.paper}, {result.place}"
    figure = f'<div class="figure">{svg}</div>' if svg else "<p>There is no figure yet.</p>"
    caption = f"{_sentence(result.shows)} Means over the seeds; bands and small marks are the seeds, and what "
    caption += "was not reached has no mark."
    parts = [
        f'<p><a href="../index.html">All recipes</a></p><h1>{escape(title)}</h1>',
        f"<p>{escape(_sentence(result.shows))}</p>",
        f'<p><span class="verdict">{escape(verdict(result.verdict, result.why))}</span></p>',
        f"{figure}<p class='faint'>{escape(caption)}</p>",
        _rows(result),
        *(_reading(name, one, searched=bool(result.search)) for name, one in result.readings.items()),
        _factors(result),
        f"<p>{escape(result.note)}</p>" if result.note else "",
        _list("What is the same", result.same),
        _list("What differs", [f"{key}: {words}" for key, words in result.differs.items()]),
        _search(result),
        _made(result),
    ]
    return _document(title, "\n".join(parts))


def index_page(told: Mapping[str, RecipeResult | tuple[str, str]]) -> str:
    """A line per recipe: its result, or where it belongs and why there is none."""
    rows = [
        (name, one[1], one[0], "", "")
        if isinstance(one, tuple)
        else (
            _Html(f'<a href="{name}/index.html">{name}</a>'), verdict(one.verdict, one.why),
            f"{one.paper}, {one.place}", one.shows, f"{one.made.processor_seconds:.0f}",
        )
        for name, one in told.items()
    ]  # fmt: skip
    table = _table("recipe|verdict|where|shows|>processor s", rows)
    words = (
        "<p>Tables and figures of the papers, made anew. A verdict says whether what the paper shows is seen here, by "
        "rules that were written before the runs; data, sizes and step sizes differ, and each page says how.</p>"
    )
    return _document(TITLE, f"<h1>{TITLE}</h1>{words}{table}")


def verdict(word: str, why: str) -> str:
    """A verdict in words.

    >>> verdict("not run", "time"), verdict("holds", "")
    ('not run: time', 'holds')
    """
    return f"{word}: {why}" if why else word


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{CSS.read_text(encoding='utf-8')}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _rows(result: RecipeResult) -> str:
    papers = any(row.paper is not None for row in result.rows)
    rows = [
        (
            row.setting, row.what, row.reading, *(["" if row.paper is None else f"{row.paper:g}"] if papers else []),
            mean(row.ours), ", ".join(map(number, row.ours.seeds)),
        )
        for row in result.rows
    ]  # fmt: skip
    heads = f"setting|what|step size|{'>the paper|' if papers else ''}>ours, mean|>ours, every seed"
    return f"<h2>The numbers</h2>{_table(heads, rows)}" if rows else ""


def _reading(name: str, reading: Reading, *, searched: bool) -> str:
    rows = [
        (one.name + (" (main)" if one.main else ""), one.words, one.outcome, numbers(one)) for one in reading.checks
    ]
    table = _table("check|says|outcome|numbers of the seeds", rows) if rows else ""
    how = READINGS[name] if searched else "step sizes are given, nothing was searched"
    words = f"<p>{escape(_sentence(verdict(reading.verdict, reading.why)))} {escape(_sentence(how))}</p>"
    return f"<h2>Checks, step size: {name}</h2>{words}{table}"


def numbers(one: ResultCheck) -> str:
    """With how many seeds a check is true, and what it compares."""
    true = sum(held is True for held in one.by_seed)
    told = "; ".join(f"{name}: {', '.join(map(number, ours))}" for name, ours in one.numbers.items())
    means = {True: "yes", False: "no", None: "cannot be compared"}[one.of_means]
    return f"true with {true} of {len(one.by_seed)} seeds, of the means: {means}. {told}"


def _factors(result: RecipeResult) -> str:
    rows = [
        (one.name, one.reading, ratio(one), f"{one.paper:.3g}", "near" if one.near else "far") for one in result.factors
    ]
    table = _table("ratio|step size|>ours|>the paper|within 1.5", rows)
    words = "<p>These never change a verdict, since data and models differ.</p>"
    return f"<h2>Sizes</h2>{words}{table}" if rows else ""


def _search(result: RecipeResult) -> str:
    rows = [
        (
            one.method, "; ".join(f"{t.value:g}: {number(t.score)} ({t.arrived} seeds)" for t in one.tried),
            f"{one.own:g}{' (at the edge)' if one.at_edge else ''}", "" if one.common is None else f"{one.common:g}",
        )
        for one in result.search
    ]  # fmt: skip
    rules = "; ".join(dict.fromkeys(f"{one.choose}, {one.setting}" for one in result.search))
    table = _table("method|tried: sum over the seeds that arrived|>own|>common", rows)
    return f"<h2>The search for step sizes</h2><p>{escape(rules)}</p>{table}" if rows else ""


def _made(result: RecipeResult) -> str:
    made = result.made
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    first = "were in place before the first run" if made.rules_first else "have changed since the first run"
    seeds = "; ".join(f"{name}: {', '.join(map(str, many))}" for name, many in result.seeds.items())
    words = [
        f"Command: <code>{escape(made.command)}</code>",
        f"Profile {result.profile}; seeds {escape(seeds)}; {len(result.runs)} runs, "
        f"{made.processor_seconds:.0f} s of processor time.",
        f"Rules {made.rules} {first}, at commit {escape(made.began_at_commit or 'none')}.",
        f"{escape(versions)}; commit {escape(made.commit)}; {escape(made.machine)}; {made.date}.",
    ]
    return "<h2>How it was made</h2>" + "".join(f"<p>{line}</p>" for line in words)


def _list(title: str, lines: Sequence[str]) -> str:
    items = (re.sub(r"\*(\w+)\*", r"<em>\1</em>", escape(line)) for line in lines)
    return f"<h2>{title}</h2><ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


class _Html(str):
    """A cell that is HTML already."""


def _table(heads: str, rows: Iterable[Sequence[str]]) -> str:
    """Headings are parted by bars, and one that begins with > has numbers below it."""
    names = heads.split("|")
    marks = [' class="number"' if name.startswith(">") else "" for name in names]
    head = "".join(f"<th{mark}>{name.lstrip('>')}</th>" for mark, name in zip(marks, names, strict=True))
    lines = (
        zip(marks, (cell if isinstance(cell, _Html) else escape(cell) for cell in row), strict=True) for row in rows
    )
    body = "".join(f"<tr>{''.join(f'<td{mark}>{cell}</td>' for mark, cell in line)}</tr>" for line in lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def ratio(one: ResultFactor) -> str:
    """Ours in words: where something was not reached, only a bound is known."""
    return f"{'at least ' if one.at_least else ''}{one.ours:.3g}"


def number(value: float | None) -> str:
    """
    >>> number(None), number(12.0), number(0.123456)
    ('not reached', '12', '0.12346')
    """
    if value is None:
        return "not reached"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.5g}"


def mean(ours: Ours) -> str:
    if ours.deviation is None:
        return number(ours.mean)
    return (
        f"{number(ours.mean)} ± {ours.deviation:.0f}"
        if ours.deviation >= 10
        else f"{number(ours.mean)} ± {ours.deviation:.2g}"
    )
