"""What all commands have in common: how usage is written, and how they end by Ctrl-C or where nobody reads them."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer.core

from crosshatch.cli.pipes import silence
from crosshatch.runs.stopping import was_interrupted

UNREAD = 141


class InterruptionError(Exception):
    """Ctrl-C, with what to say of it."""


class PlainCommand(typer.core.TyperCommand):
    """A command whose usage is written as people know it: `RUN...`, not `{RUN}...`; it ends where nobody reads it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt as error:
            raise InterruptionError(str(error)) from None  # typer would end without a word
        except (BrokenPipeError, SystemExit) as error:
            if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
                raise  # otherwise it is rich that ends, with exit code 1
            silence(sys.stdout)
            raise SystemExit(UNREAD) from None
        except Exception as error:
            if was_interrupted():
                raise InterruptionError from error
            raise
        return result

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


def spelled(command: str, *arguments: str | Path, options: Mapping[str, object]) -> str:
    """A command line with the options that were given; a list is an option for each of its entries.

    >>> spelled("sweep", "mine.toml", options={"--grid": ["a=1,2", "b=3"], "--jobs": None, "--halving": True})
    'crosshatch sweep mine.toml --grid a=1,2 --grid b=3 --halving'
    """
    words = ["crosshatch", *command.split(), *map(str, arguments)]
    for option, value in options.items():
        if isinstance(value, bool):
            words += [option] if value else []
        elif value is not None:
            several = value if isinstance(value, list | tuple) else [value]
            words += [word for one in several for word in (option, str(one))]
    return shlex.join(words)
