"""The command that makes many runs: its options and its help."""

from pathlib import Path
from typing import Annotated

import typer

from crosshatch.cli.options import Changes, ConfigFile, DataFolder, Jobs, Quiet, Ray, Workers, option, with_workers


def sweep(
    config: ConfigFile,
    grid: Annotated[
        list[str] | None, option("--grid", "a.b=c,d", "A setting and the values to try. Repeatable.")
    ] = None,
    seeds: Annotated[
        str,
        option(
            "--seeds",
            "N",
            "How many seeds per point, counted from run.seed on, or which, as in 3,7,11; if left out, one.",
        ),
    ] = "1",
    choose: Annotated[
        str | None,
        option(
            "--choose",
            "TEXT",
            "By what: 'best validation auc', 'last validation auc', 'fewest rounds to validation auc=0.9'; if "
            "left out, the best of the metric by which runs keep their best round.",
        ),
    ] = None,
    halving: Annotated[
        bool,
        typer.Option(
            "--halving",
            help="Give all points a ninth of the rounds, the best third of them a third, and the best of those all.",
        ),
    ] = False,
    pair: Annotated[
        list[str] | None, option("--pair", "a.b=c,d", "As --grid, but the first value goes with the first of others.")
    ] = None,
    ranges: Annotated[
        list[str] | None, option("--random", "a.b=LOW..HIGH", "Draw values log-uniformly between. Repeatable.")
    ] = None,
    draws: Annotated[int | None, option("--draws", "N", "Points that --random draws; if left out, ten.")] = None,
    widen: Annotated[int, option("--widen", "N", "Up to N times, try a value beyond an edge chosen.")] = 0,
    time_limit: Annotated[
        str | None, option("--time-limit", "TIME", "End after so long, as in 90s, 30m or 2h; go on later.")
    ] = None,
    changes: Changes = None,
    jobs: Jobs = None,
    workers: Workers = None,
    ray: Ray = None,
    out: Annotated[
        Path | None, option("--out", "DIR", "Folder of the sweep; if left out, sweeps/ and the config's name.")
    ] = None,
    data: DataFolder = None,
    quiet: Quiet = False,
) -> None:
    """Train with many values and seeds; choose by validation rows.

    CONFIG is a TOML file. A point is one combination of values, and has a run per seed. Writes runs/, table.csv,
    report.html and chosen.toml into the folder. The same command goes on with a sweep that was stopped; no run that has
    finished is repeated, and one that goes wrong is marked and stops no other.

    \b
    Example:
      crosshatch sweep mine.toml --set data.validation=0.2 --grid algorithm.local_steps=1,5,10 --seeds 3
    """
    from crosshatch.cli.sweeping.run_sweep import run_sweep
    from crosshatch.sweeps.grid import Bundles
    from crosshatch.sweeps.sweep import read_sweep

    bundles = Bundles(pair or [], ranges or [], draws)
    changes = with_workers(changes, workers)
    asked = read_sweep(
        config, changes, grid or [], seeds=seeds, choose=choose, halving=halving, folder=data, bundles=bundles
    )
    out = Path("sweeps") / config.stem if out is None else out
    raise typer.Exit(run_sweep(asked, out, data, jobs=jobs, ray=ray, widen=widen, time_limit=time_limit, quiet=quiet))
