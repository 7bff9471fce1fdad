"""The lines there are, held to what any line must do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from crosshatch.parties.line import Name
from crosshatch.parties.recovery.mail import Mail
from crosshatch.testing.check_line import LINE_CHECKS, Lines, Program
from crosshatch.testing.faults import Counted, Faults
from crosshatch.testing.parties.turns import TurnLine, Turns
from crosshatch.testing.world import World

ROUNDS = 4


class MemoryLines(Lines):
    """Parties in turn: what is sent is there at once, and there is no connection that could break."""

    def run(self, programs: Mapping[Name, Program]) -> dict[Name, Any]:
        turns, found = Turns(), dict[Name, Any]()

        def work(name: Name, program: Program) -> Callable[[], None]:
            return lambda: found.update({name: program(TurnLine(name, turns))})

        turns.run({name: work(name, program) for name, program in programs.items()})
        return found

    def cut(self, one: Name, other: Name) -> None:
        """There is nothing to cut."""

    def store(self, name: Name, round: int) -> None:
        """Nobody comes back."""

    @property
    def most_kept(self) -> None:
        return None


class VirtualLines(Lines):
    """Mail in a world of virtual time, where connections fail and nobody crashes."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.seed, self.faults, self.counted = seed, faults, Counted()
        self.world: World

    def run(self, programs: Mapping[Name, Program]) -> dict[Name, Any]:
        peers = {name: [other for other in programs if other != name] for name in programs}
        self.world = World(
            programs, peers, seed=self.seed, faults=self.faults,
            mail=lambda station, transmit: Mail(station.name, tuple(peers[station.name]), transmit, rounds=ROUNDS),
        )  # fmt: skip
        self.world.run()
        return self.world.results

    def cut(self, one: Name, other: Name) -> None:
        self.world.cut(one, other)

    def store(self, name: Name, round: int) -> None:
        self.world.stations[name].mail.has_stored(round)

    @property
    def most_kept(self) -> tuple[int, int]:
        return self.world.counted.kept, ROUNDS + 1


FAULTS = {
    "undisturbed": Faults(),
    "repeats": Faults(repeat=1.0, slow=30.0),
    "cuts": Faults(cut=0.1, slow=10.0),
    "both": Faults(cut=0.05, repeat=0.3, slow=30.0),
}


@pytest.mark.parametrize("check", LINE_CHECKS)
def test_in_memory(check: Callable[[Lines], None]) -> None:
    check(MemoryLines())


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("check", LINE_CHECKS)
def test_in_virtual_time(check: Callable[[Lines], None], faults: str) -> None:
    for seed in range(5):
        check(VirtualLines(seed, FAULTS[faults]))
