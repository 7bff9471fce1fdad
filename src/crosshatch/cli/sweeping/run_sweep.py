"""`crosshatch sweep`."""

import sys
from pathlib import Path
from statistics import fmean

from rich.console import Console

from crosshatch.cli.pipes import say
from crosshatch.cli.plain_command import same_again
from crosshatch.cli.sweeping.sweep_progress import choose_listener
from crosshatch.errors import TrainingError, one_line
from crosshatch.report.pooled import deviation
from crosshatch.report.units import with_deviation
from crosshatch.runs.run_settings import parse_seconds
from crosshatch.runs.stopping import INTERRUPTED, TimedStop, in_hand, stop_on_signals
from crosshatch.sweeps.course import SweepOutcome
from crosshatch.sweeps.sweep import Sweep
from crosshatch.sweeps.table import print_table
from crosshatch.sweeps.whole_sweep import (
    MOST_ON_PAGE,
    check_widen,
    choose_executor,
    failures,
    require_choice,
    run_whole,
)
from crosshatch.sweeps.widen import require_edges

FAILED = 1


def run_sweep(
    sweep: Sweep, out: Path, data: Path | None, *, jobs: int | None, ray: str | None, widen: int,
    time_limit: str | None, quiet: bool,
) -> int:  # fmt: skip
    """Run all that has not finished, print the table, write what is chosen; the exit code."""
    check_widen(widen, sweep.halving)
    limit = None if time_limit is None else parse_seconds("--time-limit", time_limit, "30m")
    require_edges(sweep, widen)
    with in_hand(), choose_executor(sweep.threads, jobs, ray, sweep.workers) as executor:
        for point in sweep.points:
            if point.refused:
                say(f"warning: {point.name} refused: {point.refused}", sys.stderr)
        with stop_on_signals() as stop, choose_listener(quiet=quiet) as listener:
            try:
                ending = stop if limit is None else TimedStop(stop, limit)
                sweep, outcome = run_whole(
                    sweep, out, data, executor=executor, listener=listener, stop=ending, widen=widen
                )
            except KeyboardInterrupt:  # once more
                raise KeyboardInterrupt(f"interrupted; go on with: {same_again()}") from None
    if outcome.stopped:
        say(f"stopped; runs under way keep their checkpoints; go on with: {same_again()}", sys.stderr)
        return INTERRUPTED
    if outcome.left:
        say(f"the time is up: {outcome.left} runs have not finished; go on with: {same_again()}", sys.stderr)
    if not quiet and (outcome.measured or not outcome.left):
        print_table(sweep, outcome, Console())
    if outcome.best is not None or outcome.apart.what or not outcome.left:  # else it is too early to choose
        try:
            require_choice(outcome, out)
        except TrainingError as error:
            say(f"error: {one_line(error)}", sys.stderr)
            return FAILED
        _conclude(sweep, outcome, out, quiet=quiet)
    if outcome.failed:
        say(f"error: {failures(outcome, out)}", sys.stderr)
        return FAILED
    return 0


def _conclude(sweep: Sweep, outcome: SweepOutcome, out: Path, *, quiet: bool) -> None:
    best, metric = outcome.best, outcome.choice.metric
    assert best is not None
    assert metric is not None
    values = best.values(metric)
    if len(values) < len(sweep.seeds.numbers):
        say(f"warning: no point ran well with every seed; {best.point.name}: {best.remark}", sys.stderr)
    if quiet:
        return
    value = with_deviation(fmean(values), deviation(values) if len(values) > 1 else None)
    say(f"chosen: {best.point.name or 'the config'} ({outcome.choice.title} {value}), in {out / 'chosen.toml'}")
    others = len(outcome.ranked) - MOST_ON_PAGE
    some = f" (the best {MOST_ON_PAGE} of {len(outcome.ranked)} points)" if others > 0 else ""
    say(f"table: {out / 'table.csv'}; report: {out / 'report.html'}{some}; runs: {out / 'runs'}")
