"""`crosshatch study`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from crosshatch.cli.pipes import say
from crosshatch.cli.plain_command import spelled
from crosshatch.cli.sweeping.sweep_progress import choose_listener
from crosshatch.runs.stopping import INTERRUPTED, in_hand, stop_on_signals
from crosshatch.studies.sentences import verdict
from crosshatch.studies.study_tables import print_table
from crosshatch.studies.whole_study import loading_ahead, read_study, run_study
from crosshatch.sweeps.whole_sweep import choose_executor

FAILED = 1


@dataclass(frozen=True)
class StudyOptions:
    """The options of the command."""

    config: Path
    seeds: str
    steps: str | None
    changes: Sequence[str]
    jobs: int | None
    ray: str | None
    out: Path
    data: Path | None
    quiet: bool

    @property
    def command(self) -> str:
        """The same again, which goes on."""
        return spelled("study", self.config, options={
            "--set": self.changes, "--seeds": self.seeds, "--steps": self.steps, "--jobs": self.jobs, "--ray": self.ray,
            "--out": self.out, "--data": self.data, "--quiet": self.quiet,
        })  # fmt: skip


def show_study(asked: StudyOptions) -> int:
    """Run all that has not finished, print the table and what it says; the exit code."""
    steps = None if asked.steps is None else asked.steps.split(",")
    study = read_study(
        asked.config,
        asked.changes,
        seeds=asked.seeds,
        steps=steps,
        folder=asked.data,
        meanwhile=loading_ahead(asked.ray),
    )
    with (
        in_hand(),
        choose_executor(study.config.run.threads, asked.jobs, asked.ray) as executor,
        stop_on_signals() as stop,
        choose_listener(quiet=asked.quiet) as listener,
    ):
        try:
            result = run_study(study, asked.out, asked.data, executor=executor, listener=listener, stop=stop)
        except KeyboardInterrupt:  # once more
            raise KeyboardInterrupt(f"interrupted; go on with: {asked.command}") from None
    if result is None:
        say(f"stopped; runs under way keep their checkpoints; go on with: {asked.command}", sys.stderr)
        return INTERRUPTED
    failed = [made for made in result.made if made.why]
    if not asked.quiet:
        print_table(result, Console())
        said = verdict(result)
        say(f"{said.headline}.")
        for text in said.certain:
            say(f"  {text}")
        for text in said.uncertain:
            say(f"  Not certain: {text}")
        say(said.how)
        say(
            f"report: {asked.out / 'report.html'}; table: {asked.out / 'table.csv'}; scores: {asked.out / 'scores.csv'}"
        )
        if result.federation.runs:
            model = asked.out / "runs" / result.federation.runs[0].path.name
            say(f"chosen: {asked.out / 'chosen.toml'}; a model to predict with is in {model}")
    for made in failed:
        say(f"error: {made.method.name} {made.why}", sys.stderr)
    return FAILED if failed else 0
