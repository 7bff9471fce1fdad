"""The command line. Whatever is slow to import is imported inside the command that needs it."""

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; left out, with the arguments of this process, which is one command.

    Ctrl-C is listened to before anything else is imported: typer and torch take their time.
    """
    if arguments is None:
        try:
            from crosshatch.runs.stopping import leave_on_interrupt

            leave_on_interrupt()
        except KeyboardInterrupt:
            print("error: interrupted", file=sys.stderr)
            sys.exit(130)
    from crosshatch.cli import app

    app.main(arguments)
