"""One process of a race: `python -m benchmarks.runtime.party FOLDER`, a party or its messages alone.

Before each turn it prints the processor time it has used, and waits for a line.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from threading import Condition

import msgspec
import torch

from benchmarks.runtime.bare import run_bare
from benchmarks.runtime.noted import Said
from benchmarks.runtime.settings import SETTINGS, Setting
from crosshatch.errors import CrosshatchError
from crosshatch.parties.line import Name
from crosshatch.parties.recovery.mail import Frame, FrameKind
from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.process import Course, Process, Seat
from crosshatch.runtime.streams import Streams
from crosshatch.simulator.allocator import keep_freed_memory

PLAN = "plan.json"


class Plan(msgspec.Struct):
    """What the process is told; `said` is what the party says and hears in a round."""

    setting: str
    name: Name
    peers: dict[Name, str]
    dials: dict[Name, str]
    port: int | None
    turns: int
    data: str | None
    kind: str
    said: list[Said]


def main(home: Path) -> None:
    """To the end of the last turn."""
    torch.set_num_threads(1)
    keep_freed_memory()
    plan = msgspec.json.decode((home / PLAN).read_bytes(), type=Plan)
    asyncio.run(KINDS[plan.kind](plan, home))


def _gate() -> None:
    """The end of a turn, and the beginning of the next."""
    sys.stdout.write(f"{time.process_time()}\n")
    sys.stdout.flush()
    sys.stdin.readline()


async def _run_party(plan: Plan, home: Path) -> None:
    setting = SETTINGS[plan.setting]
    party = setting.parties(None if plan.data is None else Path(plan.data))[plan.name]
    run_round = party.run_round

    def gated() -> None:
        if party.round % setting.rounds == 0:
            _gate()
        run_round()

    party.run_round = gated  # type: ignore[method-assign]
    peers = {name: one.encode() for name, one in plan.peers.items()}
    seat = Seat(party, Identity.read(home), home, peers, (), plan.dials, plan.port)
    course = Course("0badcafe", {}, setting.rounds * plan.turns, lambda _: setting.longest)
    await Process([seat], course, sys.stderr.write).run()
    _gate()


async def _run_bare(plan: Plan, home: Path) -> None:
    peers, rounds = {name: one.encode() for name, one in plan.peers.items()}, SETTINGS[plan.setting].rounds
    await run_bare(home, peers, plan.dials, plan.port, plan.said, rounds, plan.turns, _gate)


async def _run_echo(plan: Plan, home: Path) -> None:
    echo = _Echo(plan, home, SETTINGS[plan.setting])
    if plan.port is not None:
        await echo.streams.serve("127.0.0.1", plan.port)
    for peer, address in plan.dials.items():
        echo.streams.dial(peer, address)
    await asyncio.to_thread(echo.run)
    await echo.streams.close()


class _Echo:
    """Messages of a round's lengths in its order, over the same streams; nothing is computed, kept or stored."""

    def __init__(self, plan: Plan, home: Path, setting: Setting) -> None:
        self.plan, self.setting = plan, setting
        peers = Peers({name: one.encode() for name, one in plan.peers.items()})
        self.streams = Streams(
            Identity.read(home), peers, self._connected, self._arrived, self._failed, lambda *_: setting.longest,
            Complaints(sys.stderr.write),
        )  # fmt: skip
        self._news = Condition()
        self._here: set[Name] = set()
        self._bytes = dict.fromkeys(plan.peers, 0)

    def _connected(self, peer: Name) -> None:
        with self._news:
            self._here.add(peer)
            self._news.notify_all()

    def _arrived(self, peer: Name, frame: Frame) -> None:
        with self._news:
            self._bytes[peer] += len(frame.message)
            self._news.notify_all()

    def _failed(self, error: CrosshatchError) -> None:
        raise error

    def run(self) -> None:
        """The turns, when everybody is there."""
        with self._news:
            self._news.wait_for(lambda: len(self._here) == len(self.plan.peers))
        for _ in range(self.plan.turns):
            _gate()
            for round in range(self.setting.rounds):
                self._round(round)
        _gate()

    def _round(self, round: int) -> None:
        for way, peer, size in self.plan.said:
            if way == "to":
                self.streams.transmit(peer, Frame(FrameKind.MESSAGE, round, (round, "echo", 0), bytes(size)))
                continue
            with self._news:
                while self._bytes[peer] < size:
                    self._news.wait()
                self._bytes[peer] -= size


KINDS = {"party": _run_party, "echo": _run_echo, "bare gRPC": _run_bare}
"""What a process can be."""

if __name__ == "__main__":
    main(Path(sys.argv[1]))
