"""The lines there are, held to what any line must do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from crosshatch.errors import CrosshatchError
from crosshatch.parties.line import Key, Line, Name
from crosshatch.parties.recovery.mail import Mail
from crosshatch.testing.check_line import LINE_CHECKS, Lines, Program, check_reconnection, check_slow_receiver
from crosshatch.testing.faults import FaultCounts, Faults
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
        self.seed, self.faults, self.counted = seed, faults, FaultCounts()
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


class WrongLine:
    """A line in memory with a fault."""

    def __init__(self, line: TurnLine, fault: str) -> None:
        self.line, self.fault = line, fault
        self.sent: dict[tuple[Name, Key], bytes] = {}

    def send(self, to: Name, key: Key, message: bytes) -> None:
        if self.fault == "uses are one":
            key = (*key[:2], 0)
        if self.fault == "rounds are one":
            key = (0, *key[1:])
        if self.fault == "large messages are cut":
            message = message[:1_000_000]
        if self.fault == "empty messages are lost" and not message:
            return
        if self.fault == "other bytes are taken":
            self.line.turns.under_way.pop((self.line.me, to, key), None)
        if self.fault == "the first bytes stay":
            message = self.sent.setdefault((to, key), message)
        if self.fault == "repeats arrive again" and (to, key) in self.sent:
            key = (key[0], key[1], key[2] + 1)
        self.sent.setdefault((to, key), message)
        self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        if self.fault == "uses are one":
            key = (*key[:2], 0)
        if self.fault == "rounds are one":
            key = (0, *key[1:])
        found = self.line.recv(sender, key)
        return memoryview(found) if self.fault == "views for bytes" else found  # type: ignore[return-value]


class WrongLines(MemoryLines):
    """All with the same fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def run(self, programs: Mapping[Name, Program]) -> dict[Name, Any]:
        def wrong(program: Program) -> Program:
            def run(line: Line) -> Any:
                assert isinstance(line, TurnLine)
                return program(WrongLine(line, self.fault))

            return run

        return super().run({name: wrong(program) for name, program in programs.items()})


@pytest.mark.parametrize(
    "fault",
    [
        "uses are one", "rounds are one", "large messages are cut", "empty messages are lost", "other bytes are taken",
        "the first bytes stay", "repeats arrive again", "views for bytes",
    ],
)  # fmt: skip
def test_a_wrong_line_is_found(fault: str) -> None:
    found = [check.__name__ for check in LINE_CHECKS if not passes(check, WrongLines(fault))]
    assert found


def passes(check: Callable[[Lines], None], lines: Lines) -> bool:
    """Whether nothing is found wrong."""
    try:
        check(lines)
    except (AssertionError, RuntimeError, CrosshatchError):
        return False
    return True


class Forgetful(VirtualLines):
    """Where a connection breaks, what was sent before is forgotten."""

    def cut(self, one: Name, other: Name) -> None:
        super().cut(one, other)
        for me, peer in ((one, other), (other, one)):
            self.world.stations[me].mail._out[peer].clear()


def test_what_is_lost_with_a_connection_is_found() -> None:
    lost = [seed for seed in range(5) if not passes(check_reconnection, Forgetful(seed, Faults(slow=10.0)))]
    assert lost


def test_mail_that_is_kept_without_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mail, "has_room", lambda *_: True)
    assert not all(passes(check_slow_receiver, VirtualLines(seed, Faults(slow=30.0))) for seed in range(5))
