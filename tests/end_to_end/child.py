"""The command line in a process that can be killed, without paying for its imports each time.

Processes are forked from a server that has imported everything but run nothing.
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["crosshatch.cli.run_train", "crosshatch.data.build", "sklearn.metrics"])


class Child:
    """`crosshatch ARGUMENTS` in folder `cwd`; its output comes line by line."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        ours, theirs = _CONTEXT.Pipe(duplex=False)
        self.process: BaseProcess = _CONTEXT.Process(target=_run, args=(arguments, str(cwd), theirs))
        self.process.start()
        theirs.close()
        self._lines = os.fdopen(os.dup(ours.fileno()), encoding="utf-8")
        ours.close()

    def wait_for_evaluations(self, number: int) -> None:
        """Until so many were printed, or the process ended."""
        seen = 0
        for line in self._lines:
            seen += line.startswith("round")
            if seen >= number:
                return

    def kill(self) -> int | None:
        """End it at once; minus 9 if it was still at work."""
        self.process.kill()
        return self.wait()

    def wait(self) -> int | None:
        """Its exit code, once it has ended."""
        self._lines.read()
        self._lines.close()
        self.process.join()
        return self.process.exitcode


def _run(arguments: tuple[str, ...], cwd: str, output: Connection) -> None:
    from crosshatch.cli import main

    os.chdir(cwd)
    os.dup2(output.fileno(), 1)
    main(list(arguments))
