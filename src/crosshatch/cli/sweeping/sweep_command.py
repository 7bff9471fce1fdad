"""The command that makes many runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from crosshatch.cli.options import Changes, ConfigFile, DataFolder, Jobs, Quiet, Ray, Workers, option, with_workers

FAILED = 1


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
    from rich.console import Console  # late, as all here: whoever asks for help need not wait

    from crosshatch.cli.pipes import say
    from crosshatch.cli.plain_command import same_again
    from crosshatch.cli.sweeping.sweep_progress import choose_listener
    from crosshatch.errors import TrainingError, one_line
    from crosshatch.runs.run_settings import parse_seconds
    from crosshatch.runs.stopping import INTERRUPTED, TimedStop, in_hand, stop_on_signals
    from crosshatch.sweeps.grid import Bundles
    from crosshatch.sweeps.sweep import read_sweep
    from crosshatch.sweeps.table import chosen_words, print_table
    from crosshatch.sweeps.whole_sweep import (
        MOST_ON_PAGE,
        choose_executor,
        failures,
        require_choice,
        run_whole,
    )
    from crosshatch.sweeps.widen import require_edges

    bundles = Bundles(pair or [], ranges or [], draws)
    changes = with_workers(changes, workers)
    asked = read_sweep(
        config, changes, grid or [], seeds=seeds, choose=choose, halving=halving, folder=data, bundles=bundles
    )
    out = Path("sweeps") / config.stem if out is None else out
    limit = None if time_limit is None else parse_seconds("--time-limit", time_limit, "30m")
    require_edges(asked, widen)
    with in_hand(), choose_executor(asked.threads, jobs, ray, asked.workers) as executor:
        for point in asked.points:
            if point.refused:
                say(f"warning: {point.name} refused: {point.refused}", sys.stderr)
        with stop_on_signals() as stop, choose_listener(quiet=quiet) as listener:
            ending = stop if limit is None else TimedStop(stop, limit)
            try:
                asked, outcome = run_whole(
                    asked, out, data, executor=executor, listener=listener, stop=ending, widen=widen
                )
            except KeyboardInterrupt:  # once more
                raise KeyboardInterrupt(f"interrupted; go on with: {same_again()}") from None
    if outcome.stopped:
        say(f"stopped; runs under way keep their checkpoints; go on with: {same_again()}", sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if outcome.left:
        say(f"the time is up: {outcome.left} runs have not finished; go on with: {same_again()}", sys.stderr)
    if not quiet and (outcome.measured or not outcome.left):
        print_table(asked, outcome, Console())
    if outcome.best is not None or outcome.apart.what or not outcome.left:  # else it is too early to choose
        try:
            require_choice(outcome, out)
        except TrainingError as error:
            say(f"error: {one_line(error)}", sys.stderr)
            raise typer.Exit(FAILED) from None
        best, count = outcome.best, len(outcome.ranked)
        assert best is not None
        if len(best.rows) < len(asked.seeds.numbers):
            say(f"warning: no point ran well with every seed; {best.point.name}: {best.remark}", sys.stderr)
        if not quiet:
            say(f"chosen: {chosen_words(outcome)}, in {out / 'chosen.toml'}")
            some = f" (the best {MOST_ON_PAGE} of {count} points)" if count > MOST_ON_PAGE else ""
            say(f"table: {out / 'table.csv'}; report: {out / 'report.html'}{some}; runs: {out / 'runs'}")
    if outcome.failed:
        say(f"error: {failures(outcome, out)}", sys.stderr)
        raise typer.Exit(FAILED)
