"""Files of lines that parties write of their evaluations: of each round the last line counts.

A round that is run again after a crash gives the same line again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crosshatch.meter import Meter
from crosshatch.parties.onlooker import total
from crosshatch.parties.party import Party
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


_LINES = "sent.jsonl"


def note_what_is_sent(party: Party, folder: Path) -> None:
    """Have a party write down its counters after every evaluation; a replay writes the same line again."""
    assert party.evaluation is not None
    evaluating = party.evaluation.fed.post.meter

    def note(done: int) -> None:
        line = {"round": done, "training": party.meter.snapshot(), "evaluating": evaluating.snapshot()}
        add_line(folder / _LINES, line)

    party.evaluation.noted = note


def sent_by(folders: Iterable[Path], done: int) -> tuple[Meter, Meter] | None:
    """What all of them had sent after so many rounds, in training and to evaluate; None: some have not come so far."""
    found: list[tuple[Meter, Meter]] = []
    for folder in folders:
        line = next((one for one in read_lines(folder / _LINES) if one["round"] == done), None)
        if line is None:
            return None
        found.append((_meter(line["training"]), _meter(line["evaluating"])))
    return total(one for one, _ in found), total(one for _, one in found)


def _meter(snapshot: dict[str, dict[str, list[int]]]) -> Meter:
    meter = Meter()
    meter.load(snapshot)
    return meter
