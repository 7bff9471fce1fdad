"""Files of lines that parties write of their evaluations: of each round the last line counts.

A round that is run again after a crash gives the same line again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosshatch.meter import Meter
from crosshatch.parties.party import Party
from crosshatch.parties.seeing_all import total
from crosshatch.runs.files import write_whole

LINES, SENT, CLOSED = "evaluations.jsonl", "sent.jsonl", "closed.json"
BROKEN = "broken"
"""In a line in place of figures: what is no longer finite."""


def add_line(path: Path, row: Mapping[str, Any]) -> None:
    """One JSON object; floats are written in full."""
    with open(path, "ab") as file:
        file.write(json.dumps(row, allow_nan=False).encode() + b"\n")


@dataclass
class GrowingLines:
    """A file of lines as it grows: what was read is not read again, however long the run. `rows` are by round."""

    path: Path
    rows: dict[int, dict[str, Any]] = field(default_factory=dict, init=False)
    _read: int = field(default=0, init=False)  # bytes

    def look(self) -> dict[int, dict[str, Any]]:
        """All rows, with those that were added since."""
        if self.path.is_file():
            with open(self.path, "rb") as file:
                file.seek(self._read)
                written = file.read()
            whole = written[: written.rfind(b"\n") + 1]
            self._read += len(whole)
            self.rows |= {row["round"]: row for row in map(json.loads, whole.splitlines())}
        return self.rows

    def forget_until(self, round: int) -> None:
        """Rows of this round and those before are not needed again."""
        self.rows = {done: row for done, row in self.rows.items() if done > round}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """What is whole of a file of lines; of each round the last one."""
    return list(GrowingLines(path).look().values())


def cut_lines(path: Path, last: int) -> None:
    """Without the lines of rounds after this one."""
    kept = [row for row in read_lines(path) if row["round"] <= last]
    write_whole(path, b"".join(json.dumps(row, allow_nan=False).encode() + b"\n" for row in kept))


def note_what_is_sent(party: Party, folder: Path) -> None:
    """Have a party write down its counters after every evaluation; a replay writes the same line again."""
    assert party.evaluation is not None
    evaluating = party.evaluation.fed.post.meter

    def note(done: int) -> None:
        line = {"round": done, "training": party.meter.snapshot(), "evaluating": evaluating.snapshot()}
        add_line(folder / SENT, line)

    party.evaluation.noted = note


def sent_by(parties: Sequence[GrowingLines], done: int) -> tuple[Meter, Meter] | None:
    """What all of them had sent after so many rounds, in training and to evaluate; None: some have not come so far."""
    rows = [party.look().get(done) for party in parties]
    found = [(_meter(row["training"]), _meter(row["evaluating"])) for row in rows if row is not None]
    if len(found) < len(rows):
        return None
    for party in parties:
        party.forget_until(done)
    return total(one for one, _ in found), total(one for _, one in found)


def _meter(snapshot: dict[str, dict[str, list[int]]]) -> Meter:
    meter = Meter()
    meter.load(snapshot)
    return meter
