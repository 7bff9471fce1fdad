"""What each party has sent by the time of each evaluation, in its folder; somebody who may look at all adds it up."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from crosshatch.meter import Meter
from crosshatch.parties.onlooker import total
from crosshatch.parties.party import Party
from crosshatch.runs.evaluating.lines import add_line, read_lines

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
