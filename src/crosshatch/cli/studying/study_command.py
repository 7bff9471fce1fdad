"""The command that says whether a joint model pays: its options and its help."""

from pathlib import Path
from typing import Annotated

import typer

from crosshatch.cli.options import Changes, ConfigFile, DataFolder, Jobs, Quiet, Ray, Workers, option, with_workers


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
    from crosshatch.cli.studying.run_study import show_study

    out = Path("studies") / config.stem if out is None else out
    changes = with_workers(changes, workers)
    raise typer.Exit(
        show_study(config, changes, seeds=seeds, steps=steps, jobs=jobs, ray=ray, out=out, data=data, quiet=quiet)
    )
