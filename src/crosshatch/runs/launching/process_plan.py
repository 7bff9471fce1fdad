"""What a process of a launched run is told beside its config and its share of the data, and what it tells."""

from __future__ import annotations

from pathlib import Path

import msgspec

from crosshatch.errors import RunError, one_line
from crosshatch.parties.line import Name
from crosshatch.runtime.store import write_whole

CONFIG, HELD, _PLAN = "config.toml", "held", "plan.json"
REFUSED = 2
"""The exit code of a process that cannot go on, and must not be started again."""


class SeatPlan(msgspec.Struct):
    """One party: the certificates of its peers in other processes, the names of those in its own, whom it dials.

    Who `follows` its hub keeps no states.
    """

    name: str
    peers: dict[str, str]
    inside: list[str]
    dials: dict[str, str]
    port: int | None
    follows: bool = False


class PartyProgress(msgspec.Struct, array_like=True):
    """Of one party: rounds done, bytes sent in training, and for whom it has waited how many seconds."""

    round: int
    bytes: int
    waits_for: Name | None = None
    seconds: float = 0.0


class ProcessPlan(msgspec.Struct):
    """Of one process: what all have in common, and its own parties. `again`, `anywhere`: see `Course`."""

    run: str
    rounds: int
    keep: list[int]
    longest: int
    seats: list[SeatPlan]
    again: list[int] = []
    anywhere: bool = False

    def write(self, home: Path) -> None:
        """Into the folder of its process."""
        write_whole(home / _PLAN, msgspec.json.format(msgspec.json.encode(self)))

    @classmethod
    def read(cls, home: Path) -> ProcessPlan:
        """From the folder of its process."""
        try:
            return msgspec.json.decode((home / _PLAN).read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError) as error:
            remedy = "restore its folder, or launch a new run"
            raise RunError(f"{home.name}: its plan cannot be read ({one_line(error)}): {remedy}") from None
