"""`crosshatch sweep`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console

from crosshatch.cli.pipes import say
from crosshatch.cli.plain_command import spelled
from crosshatch.cli.sweeping.sweep_progress import choose_listener
from crosshatch.errors import TrainingError, one_line
from crosshatch.report.pooled import deviation
from crosshatch.report.units import with_deviation
from crosshatch.runs.run_settings import parse_seconds
from crosshatch.runs.stopping import INTERRUPTED, TimedStop, in_hand, stop_on_signals
from crosshatch.sweeps.bundles import Bundles
from crosshatch.sweeps.course import SweepOutcome
from crosshatch.sweeps.sweep import Sweep, read_sweep
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


@dataclass(frozen=True)
class Further:
    """Options about points beyond a plain grid, and about the time."""

    pairs: Sequence[str] = ()
    ranges: Sequence[str] = ()
    draws: int | None = None
    widen: int = 0
    time_limit: str | None = None


@dataclass(frozen=True)
class SweepOptions:
    """The options of the command."""

    config: Path
    grid: Sequence[str]
    changes: Sequence[str]
    seeds: str
    choose: str | None
    halving: bool
    jobs: int | None
    ray: str | None
    out: Path
    data: Path | None
    quiet: bool
    further: Further = Further()

    @property
    def command(self) -> str:
        """The same again, which goes on."""
        further = self.further
        return spelled("sweep", self.config, options={
            "--grid": self.grid, "--set": self.changes, "--seeds": self.seeds, "--choose": self.choose,
            "--jobs": self.jobs, "--ray": self.ray, "--out": self.out, "--data": self.data, "--pair": further.pairs,
            "--random": further.ranges, "--draws": further.draws, "--widen": further.widen or None,
            "--time-limit": further.time_limit, "--halving": self.halving, "--quiet": self.quiet,
        })  # fmt: skip


def run_sweep(asked: SweepOptions) -> int:
    """Run all that has not finished, print the table, write what is chosen; the exit code."""
    further = asked.further
    widen = check_widen(further.widen, asked.halving)
    limit = None if further.time_limit is None else parse_seconds("--time-limit", further.time_limit, "30m")
    sweep = read_sweep(
        asked.config,
        asked.changes,
        asked.grid,
        seeds=asked.seeds,
        choose=asked.choose,
        halving=asked.halving,
        folder=asked.data,
        bundles=Bundles(further.pairs, further.ranges, further.draws),
    )
    require_edges(sweep, widen)
    with in_hand(), choose_executor(sweep.threads, asked.jobs, asked.ray) as executor:
        for point in sweep.points:
            if point.refused:
                say(f"warning: {point.name} refused: {point.refused}", sys.stderr)
        with stop_on_signals() as stop, choose_listener(quiet=asked.quiet) as listener:
            try:
                ending = stop if limit is None else TimedStop(stop, limit)
                sweep, outcome = run_whole(
                    sweep, asked.out, asked.data, executor=executor, listener=listener, stop=ending, widen=widen
                )
            except KeyboardInterrupt:  # once more
                raise KeyboardInterrupt(f"interrupted; go on with: {asked.command}") from None
    if outcome.stopped:
        say(f"stopped; runs under way keep their checkpoints; go on with: {asked.command}", sys.stderr)
        return INTERRUPTED
    if outcome.left:
        say(f"the time is up: {outcome.left} runs have not finished; go on with: {asked.command}", sys.stderr)
    if not asked.quiet and (outcome.measured or not outcome.left):
        print_table(sweep, outcome, Console())
    if outcome.best is not None or outcome.apart.what or not outcome.left:  # else it is too early to choose
        try:
            require_choice(outcome, asked.out)
        except TrainingError as error:
            say(f"error: {one_line(error)}", sys.stderr)
            return FAILED
        _conclude(sweep, outcome, asked)
    if outcome.failed:
        say(f"error: {failures(outcome, asked.out)}", sys.stderr)
        return FAILED
    return 0


def _conclude(sweep: Sweep, outcome: SweepOutcome, asked: SweepOptions) -> None:
    best, out, metric = outcome.best, asked.out, outcome.choice.metric
    assert best is not None
    assert metric is not None
    values = best.values(metric)
    if len(values) < len(sweep.seeds.numbers):
        say(f"warning: no point ran well with every seed; {best.point.name}: {best.remark}", sys.stderr)
    if asked.quiet:
        return
    value = with_deviation(fmean(values), deviation(values) if len(values) > 1 else None)
    say(f"chosen: {best.point.name or 'the config'} ({outcome.choice.title} {value}), in {out / 'chosen.toml'}")
    others = len(outcome.ranked) - MOST_ON_PAGE
    some = f" (the best {MOST_ON_PAGE} of {len(outcome.ranked)} points)" if others > 0 else ""
    say(f"table: {out / 'table.csv'}; report: {out / 'report.html'}{some}; runs: {out / 'runs'}")
