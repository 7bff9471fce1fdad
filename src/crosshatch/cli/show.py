"""`crosshatch compare`, `report` and `datasets`."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from crosshatch.cli.pipes import say
from crosshatch.errors import DataError, RunError
from crosshatch.report.compare import compare_runs
from crosshatch.report.figures.write_figures import write_figures
from crosshatch.report.findings import chosen_targets
from crosshatch.report.measures import parse_target
from crosshatch.report.page import write_report
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.printed_tables import print_comparison, print_line, print_table
from crosshatch.report.runs import Run, directions_of, named_path, read_runs
from crosshatch.runs.one_writer import one_writer


def show_comparison(
    paths: Sequence[Path], targets: Sequence[str], html: Path | None, smooth: int | None = None
) -> None:
    if html is not None:
        _require_page(html)
    runs = _read(paths, smooth)
    given = [parse_target(text, directions_of(runs)) for text in targets]
    compare_runs(runs, given)  # refuses a target that a run did not measure
    print_comparison(compare_runs(runs, chosen_targets(runs, given)), Console())
    if html is not None:
        write_report(runs, html, given)
        say(str(html))


def make_report(
    paths: Sequence[Path],
    out: Path | None,
    targets: Sequence[str],
    figures: Path | None = None,
    smooth: int | None = None,
) -> None:
    """Write the page and print where it is; into a run directory only while nobody else writes into that."""
    folders = [named_path(path)[1] for path in paths]
    if out is None:
        out = folders[0] / "report.html" if len(paths) == 1 else Path("report.html")
    _require_page(out)
    inside = out.parent.is_dir() and out.parent.resolve() in [path.resolve() for path in folders]
    with one_writer(out.parent, "writing a report") if inside else nullcontext():
        runs = _read(paths, smooth)
        write_report(runs, out, targets)
    say(str(out))
    if figures is not None:
        say(f"{len(write_figures(runs, figures))} figures in {figures}")


def _require_page(out: Path) -> None:
    """Refuse to write over a file that is no page, such as one of the run's own."""
    if out.is_file():
        with out.open("rb") as file:
            begin = file.read(15).lower()
        if begin and begin != b"<!doctype html>":
            raise RunError(f"{out} is there and is no page: choose another file")


def _read(paths: Sequence[Path], smooth: int | None) -> list[Run]:
    """The runs, those that differ in their seed as one; targets are reached by the mean of `smooth` evaluations."""
    runs = read_runs(paths)
    if smooth is None:
        return pool_seeds(runs)
    if smooth < 1:
        raise RunError(f"--smooth {smooth}: at least 1, by which a target is reached at the first touch")
    for run in runs:
        if smooth > len(run.metrics):
            raise RunError(f"--smooth {smooth} is more than the {len(run.metrics)} evaluations of {run.name}: lower it")
    return pool_seeds([replace(run, smooth=smooth) for run in runs])


def show_datasets(folder: Path | None) -> None:
    """One table row per data set, and below it how to get those which are absent."""
    from crosshatch.data.public_sets.catalogue import rows as all_sets  # late: the other two commands do without it

    if folder is not None and not folder.is_dir():
        raise DataError(f"no data folder {folder}: check --data or CROSSHATCH_DATA")
    listed = all_sets(folder)
    rows, console = [], Console()
    for row in listed:
        checks = f"{row.passed} of {row.checks} pass" if row.checks else "-"
        style = "red" if row.passed < row.checks else ""
        rows.append((row.name, row.licence, row.shape, "yes" if row.present else "no", Text(checks, style=style)))
    print_table(console, "name|licence|shape|present|checks", rows)
    absent = [row for row in listed if not row.present]
    if absent:
        if folder is None:
            where = "No data folder was given (--data or CROSSHATCH_DATA), so only the built-in sets are at hand."
        else:
            where = f"{len(absent)} of these sets {'is' if len(absent) == 1 else 'are'} not in {folder}."
        lines = [f"{where} To get one, save it as NAME.npz:", *(f"  {row.name}: {row.get}" for row in absent)]
        for line in ("", *lines):
            print_line(console, line)
