"""The documentation's page "Results": verdicts of the last run as Markdown, with what a stranger needs to repeat it."""

from collections.abc import Mapping, Sequence
from textwrap import fill

from crosshatch.reproduce.running.keys import UNKNOWN
from crosshatch.reproduce.writing.recipe_page import mean, numbers, ratio, verdict
from crosshatch.reproduce.writing.result import RecipeResult

MARK = "<!-- rules: {} -->"
_WORDS = (
    "Tables and figures of the papers, made anew by one command. A verdict says whether what the paper shows is seen "
    "here, by rules that were written before the runs. The verdict is that of step sizes that each method has for "
    "itself (*own*); where one step size for all (*common*) was read too, its verdict stands beside. Data, sizes and "
    "step sizes differ from the papers'; the pages that the command writes say how, with every seed's number, every "
    "check and the search for step sizes."
)


def docs_page(results: Sequence[RecipeResult], later: Mapping[str, str], seconds: Mapping[str, float]) -> str:
    """The page, written by `make results` and by nothing else; `seconds` of processor time by run."""
    made = results[0].made
    versions = ", ".join(f"{name} {version}" for name, version in made.versions.items())
    spent = sum(seconds.get(name, 0.0) for name in {name for one in results for name in one.runs})
    commit = "" if made.commit == UNKNOWN else f", commit {made.commit}"
    lines = [
        "# The papers, reproduced",
        "",
        MARK.format(made.rules),
        "",
        fill(_WORDS, 100),
        "",
        "```",
        f"crosshatch reproduce run all --profile {results[0].profile} --data DIR",
        "```",
        "",
        fill(f"Made on {made.date}, {made.machine}; {versions}; rules {made.rules}{commit}. Processor time of all "
             f"runs, those that several recipes share counted once: {spent / 60:.1f} minutes.", 100,
             break_on_hyphens=False),
        "",
        "| recipe | where | own | common |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for one in results:
        common = one.readings.get("common")
        other = "" if common is None else verdict(common.verdict, common.why)
        lines.append(f"| `{one.id}` | {one.paper}, {one.place} | {verdict(one.verdict, one.why)} | {other} |")
    names = ", ".join(f"`{name}`" for name in later)
    lines += ["", fill(f"Not there yet: {names}.", 100, break_on_hyphens=False), ""]
    for one in results:
        lines += _section(one)
    return "\n".join(lines).rstrip() + "\n"


def _section(one: RecipeResult) -> list[str]:
    if not one.readings["own"].checks:
        return []
    lines = [f"## {one.id}", "", fill(f"{one.paper}, {one.place}: {one.shows}.", 100), ""]
    lines += ["| check | own | common |", "|---|---|---|"]
    outcomes = {name: {check.name: check.outcome for check in read.checks} for name, read in one.readings.items()}
    for check in one.readings["own"].checks:
        main = " (main)" if check.main else ""
        lines.append(f"| {check.words}{main} | {check.outcome} | {outcomes.get('common', {}).get(check.name, '')} |")
    amiss = [(name, check) for name, read in one.readings.items() for check in read.checks if check.outcome != "passes"]
    if amiss:
        lines += ["", "Numbers of the seeds where a check does not pass:", ""]
        items = (f"{check.words} ({name}): {numbers(check)}." for name, check in amiss)
        lines += [fill(one, 100, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False) for one in items]
    papers = [row for row in one.rows if row.paper is not None]
    if papers:
        lines += ["", "| setting | what | step size | the paper | ours |", "|---|---|---|---:|---:|"]
        lines += [f"| {r.setting} | {r.what} | {r.reading} | {r.paper:g} | {mean(r.ours)} |" for r in papers]
    if one.factors:
        told = "; ".join(f"{f.name} ({f.reading}): {ratio(f)}, the paper {f.paper:.3g}" for f in one.factors)
        lines += ["", fill(f"Ratios: {told}.", 100, break_on_hyphens=False)]
    return [*lines, ""]
