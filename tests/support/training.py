"""Runs that are stopped at a round, and what they have written."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from crosshatch.runs.watcher import Watcher


def lines(path: Path, *, wall: bool = False) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    return rows if wall else [{k: v for k, v in row.items() if k != "wall_seconds"} for row in rows]


def model(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted((path / "model").iterdir())}


class StopAt(Watcher):
    """Sends this process a signal after so many rounds."""

    def __init__(self, round: int, number: signal.Signals = signal.SIGINT) -> None:
        self.round, self.number = round, number

    def advance(self, round: int) -> None:
        if round == self.round:
            os.kill(os.getpid(), self.number)
