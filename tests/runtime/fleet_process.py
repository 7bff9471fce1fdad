"""One process of a fleet: the parties of a house, over real connections, with a kill where it is asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from crosshatch.errors import CrosshatchError, one_line
from crosshatch.parties.line import Key, Line, Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.runtime.handshakes import GrpcLog
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.process import Course, Process, Seat
from crosshatch.runtime.store import Pace
from crosshatch.testing.check_restarts import restart_cases

RUN = "0badcafe"
REFUSED = 2


@dataclass(frozen=True)
class Setup:
    """What the processes of a fleet are told."""

    case: str
    folder: Path
    rounds: int
    houses: Mapping[Name, list[Name]]
    peers: Mapping[Name, list[Name]]
    ports: Mapping[Name, int]
    dials: Mapping[Name, Mapping[Name, int]]  # ports, of the peer or of a proxy before it
    wait: float = 60.0
    pace: Pace = field(default_factory=Pace)
    keep: frozenset[int] = frozenset()
    again: tuple[int, ...] = ()
    struck: Name | None = None  # who is killed, once before and once after each of its sends and receives
    text: str = "1f"
    threads: int = 1


class Struck:
    """A line at which a party is killed: at the n-th occasion of a round, n one more every time."""

    def __init__(self, line: Line, folder: Path) -> None:
        self.line, self.folder = line, folder
        self.round, self.occasion = -1, 0

    def send(self, to: Name, key: Key, message: bytes) -> None:
        self._may_die(key[0])
        self.line.send(to, key, message)
        self._may_die(key[0])

    def recv(self, sender: Name, key: Key) -> bytes:
        self._may_die(key[0])
        found = self.line.recv(sender, key)
        self._may_die(key[0])
        return found

    def _may_die(self, round: int) -> None:
        self.round, self.occasion = round, self.occasion + 1 if round == self.round else 0
        before = sorted(int(path.name.partition("-")[2]) for path in self.folder.glob("struck-*"))
        if self.occasion == len(before) and round > max(before, default=0):  # one per round
            (self.folder / f"struck-{round}").touch()
            os.kill(os.getpid(), signal.SIGKILL)


def live(setup: Setup, house: Name, orders: Connection) -> None:
    """To the end, or to an error, whose line goes to the house's log."""
    torch.set_num_threads(setup.threads)
    grpc = GrpcLog()
    try:
        asyncio.run(_run(setup, house, orders, grpc))
    except CrosshatchError as error:
        _say(setup.folder / house, one_line(error))
        sys.exit(REFUSED)


async def _run(setup: Setup, house: Name, orders: Connection, grpc: GrpcLog) -> None:
    case, _ = restart_cases()[setup.case]
    parties = parties_of(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    course = Course(
        RUN, {"text": setup.text}, setup.rounds, lambda _: 1_000_000, setup.keep, setup.wait, setup.pace, setup.again
    )
    seats = []
    for name in setup.houses[house]:
        outside = [peer for peer in setup.peers[name] if peer not in setup.houses[house]]
        inside = [peer for peer in setup.peers[name] if peer in setup.houses[house]]
        certificates = {peer: (setup.folder / f"{peer}.pem").read_bytes() for peer in outside}
        dials = {peer: f"127.0.0.1:{port}" for peer, port in setup.dials[name].items()}
        me, port = Identity.read(setup.folder / name), setup.ports.get(name)
        seats.append(Seat(parties[name], me, setup.folder / name, certificates, inside, dials, port))
    process = Process(seats, course, lambda line: _say(setup.folder / house, line))
    grpc.follow(process.complaints)
    threading.Thread(target=_obey, args=(process, orders), daemon=True).start()
    for life in process.lives.values():
        if life.name == setup.struck:
            life.party.join(Struck(life.line, life.seat.folder))
    await process.run()


def _obey(process: Process, orders: Connection) -> None:
    """Orders of whoever started this, whose end is this one's too."""
    try:
        while True:
            until = orders.recv()
            if until is None:
                orders.send(process.limit.hold())
            else:
                process.limit.until(until)
    except (EOFError, OSError):
        os._exit(3)


def _say(home: Path, line: str) -> None:
    with open(f"{home}.log", "a") as log:
        log.write(f"{line}\n")
