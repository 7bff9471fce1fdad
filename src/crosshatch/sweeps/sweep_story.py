"""What a sweep's page says: which point was chosen, by what, and how many others are as good up to the noise."""

from __future__ import annotations

import math
from statistics import fmean

from crosshatch.report.pictures.page_header import Story
from crosshatch.report.pooled import deviation
from crosshatch.report.units import human_number, with_deviation
from crosshatch.sweeps.course import SweepOutcome
from crosshatch.sweeps.results import PointResult
from crosshatch.sweeps.sweep import Sweep

ERRORS = 2.0  # standard errors of a difference that count as noise


def sweep_story(sweep: Sweep, outcome: SweepOutcome) -> Story:
    """For a sweep that is done; test rows are not spoken of."""
    seeds = len(sweep.seeds.numbers)
    each = f"{seeds} runs each, one per seed" if seeds > 1 else "a run each"
    eyebrow = f"Crosshatch sweep: {len(sweep.points)} points, {each}"
    best, choice = outcome.best, outcome.choice
    how = (
        f"Points were compared by {choice.title if choice.metric else choice.text}, means over the seeds; test rows "
        "choose nothing."
    )
    if best is None or choice.metric is None:
        return Story("No point was chosen", eyebrow, how=how, unit="point")
    values = best.values(choice.metric)
    reached = with_deviation(fmean(values), deviation(values) if len(values) > 1 else None)
    headline = f"Chosen: {best.point.name or 'the config'} ({choice.title} {reached})"
    return Story(headline, eyebrow, *_as_good(outcome, best, choice.metric, seeds), how=how, unit="point")


def _as_good(outcome: SweepOutcome, best: PointResult, metric: str, seeds: int) -> tuple[list[str], list[str]]:
    """What is certain of the other points, and what is not."""
    others = [one for one in outcome.ranked if one is not best and one.values(metric)]
    if not others:
        return [], []
    if seeds < 2:
        return [], ["With one seed per point it cannot be told how much of the difference is chance."]
    within = [one for one in others if _gap(best, one, metric) <= ERRORS * _error(best, one, metric)]
    if not within:
        return [f"All {len(others)} other points are worse by more than {ERRORS:g} standard errors over the seeds."], []
    names = ", ".join(one.point.name for one in within[:3]) + (" and others" if len(within) > 3 else "")
    gap = human_number(_gap(best, within[0], metric))
    text = f"{len(within)} of {len(others)} other points are as good up to the noise over the seeds: {names}"
    return [], [f"{text} (the next one is {gap} behind, {ERRORS:g} standard errors are "
                f"{human_number(ERRORS * _error(best, within[0], metric))})."]  # fmt: skip


def _gap(best: PointResult, other: PointResult, metric: str) -> float:
    return abs(fmean(best.values(metric)) - fmean(other.values(metric)))


def _error(best: PointResult, other: PointResult, metric: str) -> float:
    both = (best.values(metric), other.values(metric))
    return math.sqrt(sum(deviation(values) ** 2 / len(values) for values in both))
