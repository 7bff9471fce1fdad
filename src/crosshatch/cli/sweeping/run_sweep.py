"""`crosshatch sweep`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rich.console import Console

from crosshatch.cli.pipes import say
from crosshatch.cli.sweeping.sweep_progress import choose_listener
from crosshatch.errors import TrainingError, one_line
from crosshatch.report.pooled import deviation
from crosshatch.report.units import with_deviation
from crosshatch.runs.stopping import INTERRUPTED, in_hand, stop_on_signals
from crosshatch.sweeps.course import Outcome
from crosshatch.sweeps.sweep import Sweep, read_sweep
from crosshatch.sweeps.table import print_table
from crosshatch.sweeps.whole_sweep import MOST_ON_PAGE, choose_executor, failures, require_choice, run_whole

FAILED = 1


@dataclass(frozen=True)
class Asked:
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

    @property
    def command(self) -> str:
        """The same again, which goes on."""
        words = ["crosshatch", "sweep", str(self.config)]
        for option, texts in (("--grid", self.grid), ("--set", self.changes)):
            words += [word for text in texts for word in (option, text)]
        given: dict[str, object] = {
            "--seeds": self.seeds,
            "--choose": self.choose,
            "--jobs": self.jobs,
            "--ray": self.ray,
        }
        given |= {"--out": self.out, "--data": self.data}
        words += [word for option, value in given.items() if value is not None for word in (option, str(value))]
        return shlex.join(words + ["--halving"] * self.halving + ["--quiet"] * self.quiet)


def run_sweep(asked: Asked) -> int:
    """Run all that has not finished, print the table, write what is chosen; the exit code."""
    sweep = read_sweep(
        asked.config,
        asked.changes,
        asked.grid,
        seeds=asked.seeds,
        choose=asked.choose,
        halving=asked.halving,
        folder=asked.data,
    )
    with in_hand(), choose_executor(sweep, asked.jobs, asked.ray) as executor:
        for point in sweep.points:
            if point.refused:
                say(f"warning: {point.name} refused: {point.refused}", sys.stderr)
        with stop_on_signals() as stop, choose_listener(quiet=asked.quiet) as listener:
            try:
                outcome = run_whole(sweep, asked.out, asked.data, executor=executor, listener=listener, stop=stop)
            except KeyboardInterrupt:  # once more
                raise KeyboardInterrupt(f"interrupted; go on with: {asked.command}") from None
    if outcome.stopped:
        say(f"stopped; runs under way keep their checkpoints; go on with: {asked.command}", sys.stderr)
        return INTERRUPTED
    if not asked.quiet:
        print_table(sweep, outcome, Console())
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


def _conclude(sweep: Sweep, outcome: Outcome, asked: Asked) -> None:
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
