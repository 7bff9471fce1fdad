"""A study on a page: the verdict, its table, and the curves and costs of an ordinary report below."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crosshatch.report.page import write_report
from crosshatch.report.pictures.page_header import Story
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import Run
from crosshatch.studies.sentences import verdict
from crosshatch.studies.study_result import StudyResult
from crosshatch.studies.study_tables import contribution_table, method_table


def write_page(result: StudyResult, path: Path) -> None:
    """The whole page, as one file."""
    runs = [_one(list(made.runs), made.method.name) for made in result.made if made.runs]
    said = verdict(result)
    story = Story(
        headline=said.headline,
        eyebrow="Crosshatch study",
        certain=said.certain,
        uncertain=said.uncertain,
        how=said.how,
        unit="method",
        sections=lambda swatches: (
            ("What each reached", method_table(result, swatches)),
            (
                f"What {result.federation.method.name} loses when the rows of one silo are shuffled",
                contribution_table(result),
            ),
        ),
    )
    write_report(runs, path, story=story)


def _one(runs: list[Run], name: str) -> Run:
    pooled = pool_seeds(runs)
    return replace(pooled[0], name=name)
