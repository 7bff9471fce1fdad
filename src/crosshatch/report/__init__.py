"""Reading run directories, comparing runs, and the report page."""

from __future__ import annotations

from crosshatch.report.compare import Comparison, compare_runs
from crosshatch.report.comparing.comparison_tables import print_comparison
from crosshatch.report.figures.write_figures import write_figures
from crosshatch.report.page import write_plot, write_report
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import Run, read_run, read_runs

__all__ = [
    "Comparison",
    "Run",
    "compare_runs",
    "pool_seeds",
    "print_comparison",
    "read_run",
    "read_runs",
    "write_figures",
    "write_plot",
    "write_report",
]
