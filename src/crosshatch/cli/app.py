"""The commands, their options and their help; and how errors leave the program.

A mistake of the user's is one line on stderr and exit code 2, a run that diverged one and exit code 1. A bug keeps its
traceback. Ctrl-C is one line and exit code 130, at any moment. A pipe that nobody reads any more ends a command quietly
with 141, as the signal SIGPIPE would; training goes on without output.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from crosshatch.cli.auditing.audit_commands import attacks, theorem1
from crosshatch.cli.launching.launch_command import launch
from crosshatch.cli.model_commands import export, predict
from crosshatch.cli.options import (
    AsJson,
    Changes,
    ConfigFile,
    DataFolder,
    Quiet,
    Resume,
    RunFolder,
    Workers,
    WorkersRay,
    option,
    with_workers,
)
from crosshatch.cli.pipes import say
from crosshatch.cli.plain_command import InterruptionError, PlainCommand, remember_typed
from crosshatch.cli.reproducing.reproduce_commands import reproduce
from crosshatch.cli.studying.study_command import study
from crosshatch.cli.sweeping.sweep_command import sweep
from crosshatch.errors import CrosshatchError, DivergenceError
from crosshatch.runs.stopping import INTERRUPTED, end_with

# No rich in help texts: importing it would take longer than all the rest of `crosshatch --help`.
app = typer.Typer(
    name="crosshatch",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

DIVERGED, USAGE_ERROR = 1, 2

_SMOOTH = "Count a target as reached by the mean of N evaluations; if left out, as each run's evaluate.smooth says."
Smooth = Annotated[int | None, option("--smooth", "N", _SMOOTH)]
_GRADIENT = "Squared gradient norm to forecast for; if left out, a tenth of that at the start."
Runs = Annotated[list[Path], typer.Argument(metavar="RUN", hidden=True)]
_TARGET = "What to reach, for example auc=0.75; or 'METRIC>=VALUE' and 'METRIC<=VALUE', in quotation marks. Repeatable."
Targets = Annotated[list[str] | None, option("--target", "METRIC=VALUE", _TARGET)]


def main(arguments: list[str] | None = None) -> None:
    command = typer.main.get_command(app)
    arguments = sys.argv[1:] if arguments is None else arguments
    remember_typed(arguments)
    try:
        code = command.main(arguments or ["--help"], prog_name="crosshatch", standalone_mode=False)
    except DivergenceError as error:
        _exit(str(error), DIVERGED)
    except CrosshatchError as error:
        _exit(str(error), USAGE_ERROR)
    except (InterruptionError, typer.Abort, KeyboardInterrupt) as error:
        _exit(str(error) or "interrupted; nothing was left half done", INTERRUPTED)
    except typer.TyperException as error:
        asked = getattr(getattr(error, "ctx", None), "command_path", "crosshatch")
        _exit(f"{error.format_message()} (see {asked} --help)", USAGE_ERROR)
    code = code if isinstance(code, int) else 0
    end_with(code)
    sys.exit(code)


def _exit(message: str, code: int) -> None:
    end_with(code)
    say(f"error: {' '.join(message.split())}", sys.stderr)
    sys.exit(code)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"crosshatch {version('crosshatch')}")
        except PackageNotFoundError:  # run from the source without being installed
            typer.echo("crosshatch, version unknown: it is not installed but run from its source")
        raise typer.Exit


@app.callback()
def crosshatch(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train one model on data that is split both ways: by features across silos, by samples across their clients.

    \b
    Example:
      crosshatch demo
    """


@app.command(cls=PlainCommand)
def train(
    config: ConfigFile,
    changes: Changes = None,
    out: RunFolder = None,
    data: DataFolder = None,
    resume: Resume = False,
    workers: Workers = None,
    ray: WorkersRay = None,
    quiet: Quiet = False,
) -> None:
    """Train once, as a config says.

    CONFIG is a TOML file. Writes config.toml, metrics.jsonl, summary.json, model/, checkpoint/ and report.html into the
    run directory. Ctrl-C finishes the round and keeps a checkpoint.

    \b
    Example:
      crosshatch train examples/breast_cancer.toml --set algorithm.local_steps=20 --out runs/q20
    """
    from crosshatch.cli.run_train import run_train

    asked = with_workers(changes, workers)
    raise typer.Exit(run_train(config, asked, out=out, data=data, resume=resume, quiet=quiet, ray=ray))


app.command(cls=PlainCommand)(launch)


@app.command(cls=PlainCommand)
def check(
    config: ConfigFile,
    changes: Changes = None,
    data: DataFolder = None,
    as_json: AsJson = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 where there are warnings.")] = False,
) -> None:
    """Say what was understood of a config and its files, without training.

    CONFIG is a TOML file. How each file is written, what its columns are and become, ids found and lost, classes, rows,
    the model, what a round sends, and what to look at, in order of weight. Nothing is written.

    \b
    Example:
      crosshatch check examples/breast_cancer.toml
    """
    from crosshatch.cli.show_check import show_check

    raise typer.Exit(show_check(config, changes or [], data=data, as_json=as_json, strict=strict))


@app.command(cls=PlainCommand)
def plan(
    config: ConfigFile,
    changes: Changes = None,
    data: DataFolder = None,
    target_gradient: Annotated[float | None, option("--target-gradient", "X", _GRADIENT)] = None,
    cluster: Annotated[
        str | None, option("--cluster", "NxC,..", "Only what a round takes on N workers with C cores, estimated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a config will cost, and what theory expects of it.

    CONFIG is a TOML file. First bytes and simulated time of a round and of the whole run. Then, after a short
    pre-training, by when theory promises an end, P, Q and step size by the adaptive strategies, and the theorems'
    bounds, step-size limits and constants.

    \b
    Example:
      crosshatch plan examples/breast_cancer.toml --set algorithm.local_steps=5
    """
    from crosshatch.cli.show_plan import show_cluster, show_plan

    if cluster is not None:
        show_cluster(config, changes or [], cluster, data=data, as_json=as_json)
        return
    show_plan(config, changes or [], data=data, level=target_gradient, as_json=as_json)


audit = typer.Typer(
    rich_markup_mode=None,
    help="""Check what a run gives away: a theorem, and attacks.

    \b
    Example:
      crosshatch audit theorem1 runs/recorded
    """,
)
audit.command(cls=PlainCommand)(theorem1)
audit.command(cls=PlainCommand)(attacks)
app.add_typer(audit, name="audit")
app.add_typer(reproduce, name="reproduce")
app.command(cls=PlainCommand)(study)
app.command(cls=PlainCommand)(sweep)
app.command(cls=PlainCommand)(predict)
app.command(cls=PlainCommand)(export)


@app.command(cls=PlainCommand)
def compare(
    runs: Runs,
    target: Targets = None,
    smooth: Smooth = None,
    html: Annotated[Path | None, option("--html", "FILE", "Also write the curves as a page.")] = None,
) -> None:
    """Compare runs: rounds, bytes and simulated time to a target.

    Every RUN is a run directory. Targets that the runs' configs name are compared too. Runs that differ in run.seed
    only are shown as one: means with deviations, and medians to a target.

    \b
    Example:
      crosshatch compare runs/fedsgd runs/tdcd --target auc=0.75
    """
    from crosshatch.cli.show import show_comparison

    show_comparison(runs, target or [], html, smooth)


@app.command(cls=PlainCommand)
def report(
    runs: Runs,
    out: Annotated[
        Path | None, option("--out", "FILE", "The page; if left out, report.html, for one run inside its directory.")
    ] = None,
    target: Targets = None,
    smooth: Smooth = None,
    figures: Annotated[
        Path | None,
        option("--figures", "DIR", "Also write the curves as SVG, PDF, PNG and CSV files; needs the extra [figures]."),
    ] = None,
) -> None:
    """Write a self-contained HTML page about one or several runs.

    Every RUN is a run directory, or NAME=DIR to give its curve a name. Runs that differ in run.seed only are shown as
    one: means with bands.

    \b
    Example:
      crosshatch report runs/fedsgd runs/tdcd --out report.html
    """
    from crosshatch.cli.show import make_report

    make_report(runs, out, target or [], figures, smooth)


@app.command(cls=PlainCommand)
def datasets(data: DataFolder = None) -> None:
    """List the data sets, and where to get those that are missing.

    Says for each its licence and shape, and for files in the data folder whether they are what they should be.

    \b
    Example:
      crosshatch datasets --data ~/data
    """
    from crosshatch.cli.show import show_datasets

    show_datasets(data)


@app.command(cls=PlainCommand)
def demo(
    out: Annotated[
        Path | None, option("--out", "DIR", "Where to write; if left out, into crosshatch-demo here.")
    ] = None,
) -> None:
    """Train with several algorithms, compare them, write a report.

    On data that ships with the package, in about half a minute.

    \b
    Example:
      crosshatch demo
    """
    from crosshatch.cli.demo import run_demo

    run_demo(out)
