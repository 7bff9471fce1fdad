"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated, Any

import typer

from crosshatch.errors import ConfigError


def option(name: str, metavar: str, text: str) -> Any:
    """One that may be left out: its name, what stands behind it, and its help."""
    return typer.Option(name, metavar=metavar, help=text, show_default=False, callback=leads_somewhere)


def leads_somewhere(value: Any) -> Any:
    """What was given; a path must not be a link that leads back to itself."""
    if isinstance(value, Path):
        try:
            value.resolve()
        except (RuntimeError, OSError):  # which of them depends on Python
            raise ConfigError(f"{value} is a link that leads to itself: choose another place") from None
    return value


# Arguments are hidden from the list of options, where typer shows Python's name of their type; each command's text
# says what they are.
ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", hidden=True)]
Changes = Annotated[
    list[str] | None, option("--set", "a.b=c", "Change a setting; nothing after the = removes it. Repeatable.")
]
Jobs = Annotated[int | None, option("--jobs", "N", "Runs side by side; if left out, one per core.")]
Ray = Annotated[str | None, option("--ray", "ADDRESS", "Hand runs, or their workers, to a Ray cluster; needs [ray].")]
Workers = Annotated[
    int | None, option("--workers", "N", "Compute with N processes, as run.workers does; needs the extra [ray].")
]
WorkersRay = Annotated[str | None, option("--ray", "ADDRESS", "Have them on a Ray cluster.")]
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
RunFolder = Annotated[Path | None, option("--out", "DIR", "Run directory; if left out, runs/ and the run's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and warnings.")]


def with_workers(changes: list[str] | None, workers: int | None) -> list[str]:
    """The changes of a config with that of `--workers`."""
    return [*(changes or []), *([] if workers is None else [f"run.workers={workers}"])]
