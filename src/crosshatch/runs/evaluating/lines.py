"""Files of lines that parties write of their evaluations: of each round the last line counts.

A round that is run again after a crash gives the same line again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crosshatch.runs.files import write_whole

LINES, CLOSED = "evaluations.jsonl", "closed.json"
BROKEN = "broken"
"""In a line in place of figures: what is no longer finite."""


def add_line(path: Path, row: Mapping[str, Any]) -> None:
    """One JSON object; floats are written in full."""
    with open(path, "ab") as file:
        file.write(json.dumps(row, allow_nan=False).encode() + b"\n")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """What is whole of a file of lines; of each round the last one."""
    written = path.read_bytes() if path.is_file() else b""
    found = {}
    for line in written[: written.rfind(b"\n") + 1].splitlines():
        row = json.loads(line)
        found[row["round"]] = row
    yield from found.values()


def cut_lines(path: Path, last: int) -> None:
    """Without the lines of rounds after this one."""
    kept = [row for row in read_lines(path) if row["round"] <= last]
    write_whole(path, b"".join(json.dumps(row, allow_nan=False).encode() + b"\n" for row in kept))
