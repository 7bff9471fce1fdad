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
from crosshatch.errors import ConfigError, DivergenceError, RunError
from crosshatch.report import pool_seeds, write_report
from crosshatch.report.pooled import deviation
from crosshatch.report.units import with_deviation
from crosshatch.runs.directory import RunDirectory
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.run_settings import available_cores
from crosshatch.runs.stopping import stop_on_signals
from crosshatch.sweeps.course import Outcome, carry_out
from crosshatch.sweeps.jobs import Executor
from crosshatch.sweeps.local_processes import LocalProcesses
from crosshatch.sweeps.ray_cluster import RayCluster
from crosshatch.sweeps.sweep import Sweep, keep_sweep, read_sweep
from crosshatch.sweeps.table import print_table, table_csv

INTERRUPTED = 130
MOST_JOBS = 1024
MOST_ON_PAGE = 20  # points; more curves than that nobody tells apart


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
    out = asked.out
    if out.exists() and not out.is_dir():
        raise RunError(f"the output folder {out} is a file: choose another --out")
    with _executor(asked, sweep) as executor:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
        with RunDirectory(out).alone():
            keep_sweep(sweep, out)
            for point in sweep.points:
                if point.refused:
                    say(f"warning: {point.name} refused: {point.refused}", sys.stderr)
            with stop_on_signals() as stop, choose_listener(quiet=asked.quiet) as listener:
                outcome = carry_out(sweep, out, asked.data, executor=executor, listener=listener, stop=stop)
            if outcome.stopped:
                say(f"stopped; runs under way keep their checkpoints; go on with: {asked.command}", sys.stderr)
                return INTERRUPTED
            _write(sweep, outcome, out)
    if not asked.quiet:
        print_table(sweep, outcome, Console())
    _conclude(sweep, outcome, asked)
    return 0


def _executor(asked: Asked, sweep: Sweep) -> Executor:
    if asked.jobs is not None and not 1 <= asked.jobs <= MOST_JOBS:
        raise ConfigError(f"--jobs {asked.jobs}: at least 1 and at most {MOST_JOBS:,} runs side by side")
    if asked.ray is not None:
        return RayCluster(asked.ray, asked.jobs)
    threads = max(point.config.run.threads or 1 for point in sweep.points if point.config is not None)
    return LocalProcesses(asked.jobs or max(1, available_cores() // threads))


def _write(sweep: Sweep, outcome: Outcome, out: Path) -> None:
    best = outcome.best
    with writing(out):
        write_whole(out / "table.csv", table_csv(sweep, outcome).encode())
        if best is None:
            (out / "chosen.toml").unlink(missing_ok=True)
        else:
            write_whole(out / "chosen.toml", sweep.chosen_text(best.point, outcome.choice).encode())
    shown = outcome.ranked[:MOST_ON_PAGE]
    runs = [result.run for point in shown for result in point.runs if result.run is not None]
    if runs:
        write_report(pool_seeds(runs), out / "report.html")


def _conclude(sweep: Sweep, outcome: Outcome, asked: Asked) -> None:
    best, out = outcome.best, asked.out
    if best is None:
        _complain(outcome, out)
        return
    metric = outcome.choice.metric
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


def _complain(outcome: Outcome, out: Path) -> None:
    """Nothing can be chosen: said as the first run that went wrong says it."""
    runs = [run for result in outcome.results for run in result.runs]
    states = {run.ended.state for run in runs}
    if states == {"finished"}:
        raise RunError(f"no run reached the target of --choose '{outcome.choice.text}': choose by another, see {out}")
    first = next(run for run in runs if run.ended.state != "finished")
    message = (
        f"no run of the sweep in {out} ended well; the first, {first.job.name}, {first.ended.state}: {first.ended.why}"
    )
    raise DivergenceError(message) if "diverged" in states else RunError(message)
