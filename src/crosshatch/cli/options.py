"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# Arguments are hidden from the list of options, where typer shows Python's name of their type; each command's text
# says what they are.
ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", hidden=True)]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="a.b=c", help="Change a setting; nothing after the = removes it. Repeatable."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        envvar="CROSSHATCH_DATA",
        show_envvar=False,
        help="Folder of data sets, each NAME.npz; or set CROSSHATCH_DATA.",
    ),
]
