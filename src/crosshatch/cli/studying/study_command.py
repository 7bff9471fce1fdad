"""The command that says whether a joint model pays."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from crosshatch.cli.options import Changes, ConfigFile, DataFolder, Jobs, Quiet, Ray, Workers, option, with_workers

FAILED = 1


def study(
    config: ConfigFile,
    seeds: Annotated[
        str,
        option("--seeds", "N", "How many seeds, counted from run.seed on, or which, as in 3,7,11; if left out, five."),
    ] = "5",
    steps: Annotated[
        str | None, option("--steps", "a,b", "Step sizes to begin with; if left out, 0.03,0.1,0.3,1.")
    ] = None,
    changes: Changes = None,
    jobs: Jobs = None,
    workers: Workers = None,
    ray: Ray = None,
    out: Annotated[
        Path | None, option("--out", "DIR", "Folder of the study; if left out, studies/ and the config's name.")
    ] = None,
    data: DataFolder = None,
    quiet: Quiet = False,
) -> None:
    """Say whether a joint model pays, and what is certain of it.

    CONFIG is a TOML file. Trains each silo alone on the rows that all have, all columns in one place, FedSGD and the
    config's own method, on the same rows and seeds, each at a step size of its own that validation rows choose; and
    boosted trees beside them. Writes table.csv, scores.csv, result.json, report.html, chosen.toml and runs/ into the
    folder. The same command goes on with a study that was stopped.

    \b
    Example:
      crosshatch study mine.toml --seeds 5
    """
    from rich.console import Console  # late, as all here: whoever asks for help need not wait

    from crosshatch.cli.pipes import say
    from crosshatch.cli.plain_command import same_again
    from crosshatch.cli.sweeping.sweep_progress import choose_listener
    from crosshatch.runs.stopping import INTERRUPTED, in_hand, stop_on_signals
    from crosshatch.studies.study_result import verdict
    from crosshatch.studies.study_tables import print_table
    from crosshatch.studies.whole_study import loading_ahead, read_study, run_study
    from crosshatch.sweeps.whole_sweep import choose_executor

    out = Path("studies") / config.stem if out is None else out
    tried = None if steps is None else steps.split(",")
    changes = with_workers(changes, workers)
    asked = read_study(config, changes, seeds=seeds, steps=tried, folder=data, meanwhile=loading_ahead(ray))
    with (
        in_hand(),
        choose_executor(asked.config.run.threads, jobs, ray, asked.config.run.workers) as executor,
        stop_on_signals() as stop,
        choose_listener(quiet=quiet) as listener,
    ):
        try:
            result = run_study(asked, out, data, executor=executor, listener=listener, stop=stop)
        except KeyboardInterrupt:  # once more
            raise KeyboardInterrupt(f"interrupted; go on with: {same_again()}") from None
    if result is None:
        say(f"stopped; runs under way keep their checkpoints; go on with: {same_again()}", sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if not quiet:
        print_table(result, Console())
        said = verdict(result)
        certain = [f"  {text}" for text in said.certain]
        for line in (f"{said.headline}.", *certain, *(f"  Not certain: {text}" for text in said.uncertain), said.how):
            say(line)
        say(f"report: {out / 'report.html'}; table: {out / 'table.csv'}; scores: {out / 'scores.csv'}")
        if result.federation.runs:
            model = out / "runs" / result.federation.runs[0].path.name
            say(f"chosen: {out / 'chosen.toml'}; a model to predict with is in {model}")
    failed = [made for made in result.made if made.why]
    for made in failed:
        say(f"error: {made.method.name} {made.why}", sys.stderr)
    raise typer.Exit(FAILED if failed else 0)
