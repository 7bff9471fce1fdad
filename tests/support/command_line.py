"""The command line as tests call it, and the environment of processes that do."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True)
class Ended:
    """What a command left: exit code and both outputs."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


def environment() -> dict[str, str]:
    """For a process of its own: this source, one thread, no data folder."""
    kept = {key: value for key, value in os.environ.items() if key != "CROSSHATCH_DATA"}
    return kept | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
