"""The command `crosshatch launch`."""

from typing import Annotated

import typer

from crosshatch.cli.options import Changes, ConfigFile, DataFolder, Quiet, Resume, RunFolder
from crosshatch.errors import ConfigError

FromRound = Annotated[
    str | None,
    typer.Option("--from", metavar="ROUND", help="With --resume: all begin again at a round that everybody kept."),
]
Anywhere = Annotated[
    bool,
    typer.Option("--anywhere", help="With --resume: after a crash go on with any processor, torch and threads."),
]


def launch(
    config: ConfigFile,
    changes: Changes = None,
    out: RunFolder = None,
    data: DataFolder = None,
    resume: Resume = False,
    from_round: FromRound = None,
    anywhere: Anywhere = False,
    quiet: Quiet = False,
) -> None:
    """Train once with every party in a process of its own, on this machine.

    CONFIG is a TOML file as for train, and the run directory is the same. The data are divided here, every process gets
    its own share and certificate and they talk over mutual TLS; the parties evaluate the model themselves.

    \b
    Example:
      crosshatch launch examples/quick.toml --out runs/launched
      crosshatch launch examples/quick.toml --out runs/launched --resume --from 20
    """
    from crosshatch.cli.run_train import run_train

    if from_round is not None and not from_round.isdecimal():
        raise ConfigError(f"--from {from_round}: write the number of a round that all have kept, for example 20")
    told = {"from_round": None if from_round is None else int(from_round), "anywhere": anywhere}
    done = run_train(config, changes or [], out=out, data=data, resume=resume, quiet=quiet, launched=told)
    raise typer.Exit(done)
