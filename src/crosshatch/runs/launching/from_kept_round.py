"""All parties of a run begin again at a round whose state every one has kept: decided once, and on record.

The record is a file of lines beside the parties' folders. What it says goes into every process's plan at each launch,
so that a launch that was killed meanwhile leaves nobody with another decision.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from crosshatch.errors import RunError
from crosshatch.parties.line import Name
from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.runs.directory import PARTIES, RunDirectory
from crosshatch.runs.evaluating.lines import cut_lines
from crosshatch.runs.launching.process_plan import ProcessPlan
from crosshatch.runtime.store import Store, write_whole

_RECORD = "begun_again.jsonl"


class _Decision(msgspec.Struct):
    round: int
    kept: list[int]  # what there was to choose from
    decided: str  # when


def begin_again(out: Path, round: int) -> None:
    """Have the run in a folder go on from a round that all have kept; nothing changes where one has not."""
    plans = plans_of(out / PARTIES)
    if not plans:
        raise RunError(f"--from {round}: there are no processes' states in {out}: launch a run first")
    kept = sorted(set.intersection(*(set(store.copies()) for _, _, store in _keeping(plans))))
    if round not in kept:
        choice = (
            f"all have kept those of {', '.join(map(str, kept))}" if kept else "there is no round that all have kept"
        )
        raise RunError(f"--from {round}: not every party has kept a state of that round: {choice}")
    for name, run, store in _keeping(plans):
        written = store.read(round)
        assert written is not None
        unpack(written, run=run, party=name)  # whole, and its own
    path = out / PARTIES / _RECORD
    line = msgspec.json.encode(_Decision(round, kept, decided=datetime.now(UTC).isoformat(timespec="seconds")))
    write_whole(path, (path.read_bytes() if path.exists() else b"") + line + b"\n")
    directory = RunDirectory(out)
    directory.summary.unlink(missing_ok=True)
    for file in (directory.metrics, *(out / PARTIES).glob("*/*/*.jsonl")):  # later evaluations are made again
        cut_lines(file, round)


def tell_decisions(folder: Path, *, anywhere: bool) -> None:
    """Write into the plans what was decided, and whether rounds may be run again under other processors."""
    path = folder / _RECORD
    lines = path.read_bytes().splitlines() if path.exists() else []
    again = [msgspec.json.decode(line, type=_Decision).round for line in lines]
    for home, plan in plans_of(folder).items():
        if (plan.again, plan.anywhere) != (again, anywhere):
            plan.again, plan.anywhere = again, anywhere
            plan.write(home)


def plans_of(folder: Path) -> dict[Path, ProcessPlan]:
    """The plans of the processes, by their folders."""
    homes = sorted(path for path in folder.glob("*") if path.is_dir()) if folder.is_dir() else []
    return {home: ProcessPlan.read(home) for home in homes}


def _keeping(plans: Mapping[Path, ProcessPlan]) -> list[tuple[Name, str, Store]]:
    """Who keeps states: name, run and folder."""
    every = [(seat, plan.run, home) for home, plan in plans.items() for seat in plan.seats]
    return [(seat.name, run, Store(home / seat.name)) for seat, run, home in every if not seat.follows]
