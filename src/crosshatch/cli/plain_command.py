"""What all commands have in common: how usage is written, and how they end by Ctrl-C or where nobody reads them."""

import shlex
import sys
from collections.abc import Sequence
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


class _Typed:
    """The words behind `crosshatch` of the command that this process carries out."""

    words: Sequence[str] = ()


def remember_typed(words: Sequence[str]) -> None:
    _Typed.words = words


def same_again(without: str = "") -> str:
    """The command line as it was typed, perhaps without an option: for commands that go on when they are repeated."""
    return shlex.join(["crosshatch", *(word for word in _Typed.words if word != without)])
