"""The command `crosshatch launch`."""

from __future__ import annotations

import typer

from crosshatch.cli.options import Changes, ConfigFile, DataFolder, Quiet, Resume, RunFolder


def launch(
    config: ConfigFile,
    changes: Changes = None,
    out: RunFolder = None,
    data: DataFolder = None,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Train once with every party in a process of its own, on this machine.

    CONFIG is a TOML file as for train, and the run directory is the same. The data are divided here, every process gets
    its own share and certificate and they talk over mutual TLS; the simulator counts along and measures.

    \b
    Example:
      crosshatch launch examples/quick.toml --out runs/launched
    """
    from crosshatch.cli.run_train import run_train

    done = run_train(config, changes or [], out=out, data=data, resume=resume, quiet=quiet, launched=True)
    raise typer.Exit(done)
