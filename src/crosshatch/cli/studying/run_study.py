"""`crosshatch study`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from crosshatch.cli.pipes import say
from crosshatch.cli.plain_command import same_again
from crosshatch.cli.sweeping.sweep_progress import choose_listener
from crosshatch.runs.stopping import INTERRUPTED, in_hand, stop_on_signals
from crosshatch.studies.sentences import verdict
from crosshatch.studies.study_tables import print_table
from crosshatch.studies.whole_study import loading_ahead, read_study, run_study
from crosshatch.sweeps.whole_sweep import choose_executor

FAILED = 1


def show_study(
    config: Path, changes: Sequence[str], *, seeds: str, steps: str | None, jobs: int | None, ray: str | None,
    out: Path, data: Path | None, quiet: bool,
) -> int:  # fmt: skip
    """Run all that has not finished, print the table and what it says; the exit code."""
    tried = None if steps is None else steps.split(",")
    study = read_study(config, changes, seeds=seeds, steps=tried, folder=data, meanwhile=loading_ahead(ray))
    with (
        in_hand(),
        choose_executor(study.config.run.threads, jobs, ray, study.config.run.workers) as executor,
        stop_on_signals() as stop,
        choose_listener(quiet=quiet) as listener,
    ):
        try:
            result = run_study(study, out, data, executor=executor, listener=listener, stop=stop)
        except KeyboardInterrupt:  # once more
            raise KeyboardInterrupt(f"interrupted; go on with: {same_again()}") from None
    if result is None:
        say(f"stopped; runs under way keep their checkpoints; go on with: {same_again()}", sys.stderr)
        return INTERRUPTED
    failed = [made for made in result.made if made.why]
    if not quiet:
        print_table(result, Console())
        said = verdict(result)
        say(f"{said.headline}.")
        for text in said.certain:
            say(f"  {text}")
        for text in said.uncertain:
            say(f"  Not certain: {text}")
        say(said.how)
        say(f"report: {out / 'report.html'}; table: {out / 'table.csv'}; scores: {out / 'scores.csv'}")
        if result.federation.runs:
            model = out / "runs" / result.federation.runs[0].path.name
            say(f"chosen: {out / 'chosen.toml'}; a model to predict with is in {model}")
    for made in failed:
        say(f"error: {made.method.name} {made.why}", sys.stderr)
    return FAILED if failed else 0
