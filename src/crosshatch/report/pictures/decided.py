"""What deciding by a model comes to: confusion at a threshold, and whether its probabilities may be believed."""

from __future__ import annotations

from collections.abc import Sequence

from crosshatch.report.compare import Comparison
from crosshatch.report.page_tables import html_table, run_name
from crosshatch.report.runs import Run
from crosshatch.report.units import human_count, human_number
from crosshatch.task.measuring.decisions import Decisions

_SIDE, _EDGE = 150, 12  # pixels


def decision_table(runs: Sequence[Run], result: Comparison, swatches: Sequence[str]) -> str:
    """One row per run of two classes; of several seeds the first. Empty where there is none."""
    rows, chosen = [], False
    for run, outcome, swatch in zip(runs, result.outcomes, swatches, strict=True):
        found = run.facts.decisions
        if found is None:
            continue
        chosen = chosen or found.on_validation
        counts = (found.true_positives, found.false_positives, found.false_negatives, found.true_negatives)
        name = run_name(outcome, swatch) + ("<small>its first seed</small>" if run.seeds else "")
        rows.append([
            name, human_number(found.threshold), *map(human_count, counts), human_number(found.precision),
            human_number(found.recall), human_number(found.f1), _reliability(found),
        ])  # fmt: skip
    headings = ["Trained", "Threshold", "True positives", "False positives", "False negatives", "True negatives",
                "Precision", "Recall", "F1", "Reliability"]  # fmt: skip
    who = "was chosen on the validation rows, for the highest F1 there" if chosen else "is 0.5: no validation rows"
    note = (
        f'<p class="note">On the test rows; the threshold {who}. Reliability: the share that is positive against the '
        "probability that was given, in tenths; on the line both are the same.</p>"
    )
    return html_table(headings, rows) + note if rows else ""


def _reliability(found: Decisions) -> str:
    """Dots of the bins over the line on which probabilities are right; larger where there are more rows."""
    total = sum(one.samples for one in found.reliability) or 1
    length = _SIDE - 2 * _EDGE
    dots = "".join(
        f'<circle cx="{_EDGE + length * one.probability:.1f}" cy="{_SIDE - _EDGE - length * one.positive:.1f}" '
        f'r="{2 + 6 * (one.samples / total) ** 0.5:.1f}"/>'
        for one in found.reliability
    )
    line = f'<path d="M{_EDGE} {_SIDE - _EDGE}L{_SIDE - _EDGE} {_EDGE}"/>'
    words = "share of positives against probability"
    return f'<svg class="reliability" viewBox="0 0 {_SIDE} {_SIDE}" role="img" aria-label="{words}">{line}{dots}</svg>'
