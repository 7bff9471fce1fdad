"""The head of a page: its headline, what is certain and what is not, and the figures of a single run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from crosshatch.report.compare import Comparison
from crosshatch.report.curves import metric_order
from crosshatch.report.findings import headline
from crosshatch.report.measures import metric_title
from crosshatch.report.pooled import singles
from crosshatch.report.runs import Run
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds, with_deviation

# More reasons than these have to be opened.
_MOST_NOTES = 3


@dataclass(frozen=True)
class Story:
    """What a page says in place of what its runs say for themselves.

    `certain`, `uncertain` and `how` are sentences below the headline. `sections` makes titles and HTML to stand before
    the curves, from the swatches of the runs by name.
    """

    headline: str
    eyebrow: str
    certain: Sequence[str] = ()
    uncertain: Sequence[str] = ()
    how: str = ""
    sections: Callable[[Mapping[str, str]], Sequence[tuple[str, str]]] = lambda _: ()
    unit: str = "run"  # what a curve is: a point of a sweep has a run per seed


def page_header(runs: Sequence[Run], result: Comparison, notes: Sequence[str] = (), story: Story | None = None) -> str:
    """Of a report of these runs, or of one that has a story of its own."""
    if story is not None:
        sure = "".join(f"<li>{escape(text)}</li>" for text in story.certain)
        unsure = "".join(f'<li class="unsure">{escape(text)}</li>' for text in story.uncertain)
        listed = f'<ul class="said">{sure}{unsure}</ul>' if sure or unsure else ""
        return (
            f'<header><p class="eyebrow">{escape(story.eyebrow)}</p><h1>{escape(story.headline)}</h1>{listed}'
            f'<p class="note">{escape(story.how)}</p>{_notes(notes, "points failed")}</header>'
        )
    names = ", ".join(run.name for run in runs) if len(runs) <= 8 else f"{len(runs)} runs"
    tiles = ""
    if len(runs) == 1:
        outcome = result.outcomes[0]
        main = metric_order(runs)[0]
        final = with_deviation(outcome.final.get(main, float("nan")), outcome.deviation.get(main))
        where = "the rounds" if outcome.seeds else f"round {human_count(outcome.chosen.get('round', 0))}"
        chosen = [
            (human_number(outcome.chosen[main]), f"{metric_title(main)} at {where} validation rows chose")
            for main in outcome.chosen.keys() & {main}
        ]
        numbers = [(final, f"final {metric_title(main)}"), *chosen,
                   (human_count(outcome.rounds), "rounds"), (human_bytes(outcome.bytes), "sent by all parties"),
                   (human_seconds(outcome.sim_seconds), "simulated time")]  # fmt: skip
        tiles = "".join(f'<div class="tile"><b>{value}</b><span>{escape(name)}</span></div>' for value, name in numbers)
        tiles = f'<div class="tiles">{tiles}</div>'
    unfinished = [run.name for run in singles(runs) if not run.finished]
    note = f'<p class="note">Not finished: {escape(", ".join(unfinished))}.</p>' if unfinished else ""
    note += "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in result.notes)
    lost = [(run.name, run.facts.diverged.why) for run in singles(runs) if run.facts.diverged is not None]
    whys = _notes([f"Diverged: {name}, {why}." for name, why in lost], "runs diverged")
    whys += _notes(notes, "points failed")
    return (
        f'<header><p class="eyebrow">Crosshatch report: {escape(names)}</p>'
        f"<h1>{escape(headline(runs, result.targets))}</h1>{note}{whys}{tiles}</header>"
    )


def _notes(texts: Sequence[str], what: str) -> str:
    """A paragraph each; many of them have to be opened."""
    found = "".join(f'<p class="note">{escape(text)}</p>' for text in texts)
    if len(texts) <= _MOST_NOTES:
        return found
    return f'<details class="note"><summary>{len(texts)} {what}</summary>{found}</details>'
