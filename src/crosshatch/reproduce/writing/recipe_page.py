"""The page of a recipe and the index over all, as self-contained HTML that needs no script."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

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
    lines = [
        f"<tr><td>{name}</td><td>{escape(one[1])}</td><td>{escape(one[0])}</td><td></td><td></td></tr>"
        if isinstance(one, tuple)
        else f'<tr><td><a href="{name}/index.html">{name}</a></td><td>{escape(verdict(one.verdict, one.why))}</td>'
        f"<td>{escape(one.paper)}, {escape(one.place)}</td><td>{escape(one.shows)}</td>"
        f'<td class="number">{one.made.processor_seconds:.0f}</td></tr>'
        for name, one in told.items()
    ]
    head = "<tr><th>recipe</th><th>verdict</th><th>where</th><th>shows</th><th class='number'>processor s</th></tr>"
    words = (
        "<p>Tables and figures of the papers, made anew. A verdict says whether what the paper shows is seen here, by "
        "rules that were written before the runs; data, sizes and step sizes differ, and each page says how.</p>"
    )
    return _document("The papers, reproduced", f"<h1>The papers, reproduced</h1>{words}{_table(head, lines)}")


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
    lines = [
        f"<tr><td>{escape(row.setting)}</td><td>{escape(row.what)}</td><td>{row.reading}</td>"
        + (f'<td class="number">{"" if row.paper is None else f"{row.paper:g}"}</td>' if papers else "")
        + f'<td class="number">{mean(row.ours)}</td>'
        + f'<td class="number">{", ".join(map(number, row.ours.seeds))}</td></tr>'
        for row in result.rows
    ]
    if not lines:
        return ""
    paper = "<th class='number'>the paper</th>" if papers else ""
    head = (
        f"<tr><th>setting</th><th>what</th><th>step size</th>{paper}"
        "<th class='number'>ours, mean</th><th class='number'>ours, every seed</th></tr>"
    )
    return f"<h2>The numbers</h2>{_table(head, lines)}"


def _reading(name: str, reading: Reading, *, searched: bool) -> str:
    lines = [
        f"<tr><td>{escape(one.name)}{' (main)' if one.main else ''}</td><td>{escape(one.words)}</td>"
        f"<td>{one.outcome}</td><td>{escape(numbers(one))}</td></tr>"
        for one in reading.checks
    ]
    head = "<tr><th>check</th><th>says</th><th>outcome</th><th>numbers of the seeds</th></tr>"
    how = READINGS[name] if searched else "step sizes are given, nothing was searched"
    words = f"<p>{escape(_sentence(verdict(reading.verdict, reading.why)))} {escape(_sentence(how))}</p>"
    return f"<h2>Checks, step size: {name}</h2>{words}{_table(head, lines) if lines else ''}"


def numbers(one: ResultCheck) -> str:
    """With how many seeds a check is true, and what it compares."""
    true = sum(held is True for held in one.by_seed)
    told = "; ".join(f"{name}: {', '.join(map(number, ours))}" for name, ours in one.numbers.items())
    means = {True: "yes", False: "no", None: "cannot be compared"}[one.of_means]
    return f"true with {true} of {len(one.by_seed)} seeds, of the means: {means}. {told}"


def _factors(result: RecipeResult) -> str:
    lines = [
        f'<tr><td>{escape(one.name)}</td><td>{one.reading}</td><td class="number">{ratio(one)}</td>'
        f'<td class="number">{one.paper:.3g}</td><td>{"near" if one.near else "far"}</td></tr>'
        for one in result.factors
    ]
    if not lines:
        return ""
    head = (
        "<tr><th>ratio</th><th>step size</th><th class='number'>ours</th><th class='number'>the paper</th>"
        "<th>within 1.5</th></tr>"
    )
    return f"<h2>Sizes</h2><p>These never change a verdict, since data and models differ.</p>{_table(head, lines)}"


def _search(result: RecipeResult) -> str:
    lines = [
        f"<tr><td>{escape(one.method)}</td><td>"
        + escape("; ".join(f"{t.value:g}: {number(t.score)} ({t.arrived} seeds)" for t in one.tried))
        + f'</td><td class="number">{one.own:g}{" (at the edge)" if one.at_edge else ""}</td>'
        f'<td class="number">{"" if one.common is None else f"{one.common:g}"}</td></tr>'
        for one in result.search
    ]
    if not lines:
        return ""
    head = "<tr><th>method</th><th>tried: sum over the seeds that arrived</th><th>own</th><th>common</th></tr>"
    rules = "; ".join(dict.fromkeys(f"{one.choose}, {one.setting}" for one in result.search))
    return f"<h2>The search for step sizes</h2><p>{escape(rules)}</p>{_table(head, lines)}"


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


def _table(head: str, lines: Sequence[str]) -> str:
    return f'<div class="wide"><table>{head}{"".join(lines)}</table></div>'


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
