"""The command line. Whatever is slow to import is imported inside the command that needs it."""

from __future__ import annotations

from crosshatch.cli.app import main

__all__ = ["main"]
