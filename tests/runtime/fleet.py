"""Parties of a federation as real processes that can be killed, stopped and cut off, and the model they end with.

Processes are forked from one that has loaded torch and has never used grpc, so that a restart takes little time.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch

from crosshatch.meter import Meter
from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.runs.launching.seating import dials, free_ports
from crosshatch.runtime.handshakes import HANDSHAKES_ONLY
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.store import Store
from crosshatch.testing.check_restarts import restart_cases, undisturbed
from crosshatch.testing.parties.engine import PartyByParty
from tests.runtime.fleet_process import REFUSED, RUN, Setup, live

_LOOK = 0.02  # seconds between two looks
_ENOUGH = 200  # rounds, after which everybody has talked to all its peers


@cache
def _starter() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.runtime.fleet_process"])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in HANDSHAKES_ONLY.items():
            patch.setenv(name, value)
        forkserver.ensure_running()
    return context


def fresh(case: str) -> dict[Name, Party]:
    """The parties of a case before their first round."""
    return engine_of(case).parties


def engine_of(case: str) -> PartyByParty:
    """They in memory, in turn."""
    one, _ = restart_cases()[case]
    return PartyByParty(one.data, one.task, one.algorithm, seed=one.seed, codecs=one.codecs)


@cache
def in_memory(case: str, rounds: int) -> tuple[tuple[torch.Tensor, ...], Meter]:
    """Model and meter of the parties in memory, undisturbed."""
    return undisturbed(case, rounds)[:2]


class Fleet:
    """The processes of a case; `through(port)` is the port of a proxy before a party's own."""

    def __init__(
        self,
        case: str,
        folder: Path,
        *,
        rounds: int,
        through: Callable[[int], int] = lambda port: port,
        **settings: Any,
    ) -> None:
        parties, self.peers = fresh(case), undisturbed(case, min(rounds, _ENOUGH))[2]
        houses: dict[Name, list[Name]] = {}
        for name, party in parties.items():
            houses.setdefault(party.house, []).append(name)
            me = Identity.make(name)
            me.write(folder / name)
            (folder / f"{name}.pem").write_bytes(me.certificate)
        home = {name: party.house for name, party in parties.items()}
        called = {
            name: [peer for peer in self.peers[name] if home[peer] != home[name] and dials(name, peer)]
            for name in parties
        }
        ports = free_ports({peer for some in called.values() for peer in some})
        dialled = {name: {peer: through(ports[peer]) for peer in some} for name, some in called.items()}
        self.setup = Setup(case, folder, rounds, houses, self.peers, ports, dialled, **settings)
        self.houses = list(houses)
        self.restarts = 0
        self._processes: dict[Name, ForkServerProcess] = {}
        self._orders: dict[Name, Connection] = {}

    def start(self, houses: Iterable[Name] | None = None) -> None:
        """These processes, or all."""
        for house in houses or self.houses:
            mine, theirs = _starter().Pipe()
            self._processes[house] = process = _starter().Process(target=live, args=(self.setup, house, theirs))
            process.start()
            theirs.close()
            self._orders[house] = mine

    def check(self) -> bool:
        """Start again who was killed; whether all have come to their end. What a process cannot go on for is raised."""
        codes = {house: process.exitcode for house, process in self._processes.items()}
        for house, code in codes.items():
            if code == -signal.SIGKILL:
                self.restarts += 1
                self.start([house])
            elif code not in (None, 0):
                raise AssertionError(f"{house} ended with {code}: {self.log(house)}")
        return all(code == 0 for code in codes.values())

    def wait(self, until: Callable[[], bool] | None = None, seconds: float = 240.0) -> None:
        """Until something is so, or all have come to their end."""
        deadline, pause = time.monotonic() + seconds, Event()
        while not (self.check() or (until is not None and until())):
            if time.monotonic() > deadline:
                logs = "; ".join(f"{house} at {self.stored(house)}: {self.log(house)[-200:]}" for house in self.houses)
                raise AssertionError(f"no end after {seconds} s: {logs}")
            pause.wait(_LOOK)

    def wait_refused(self, seconds: float = 120.0) -> dict[Name, str]:
        """Until all have ended, none of them well; their last lines."""
        deadline = time.monotonic() + seconds
        for process in self._processes.values():
            process.join(max(0.0, deadline - time.monotonic()))
        assert {one.exitcode for one in self._processes.values()} == {REFUSED}, self._codes()
        return {house: self.log(house).splitlines()[-1] for house in self.houses}

    def hold(self) -> int:
        """Stop all after the same round; which one."""
        for orders in self._orders.values():
            orders.send(None)
        last = max(int(orders.recv()) for orders in self._orders.values())
        for orders in self._orders.values():
            orders.send(last)
        return last

    def end_and_check(self) -> int:
        """Stop all after the same round and compare the model; which round."""
        self.check()
        last = self.hold()
        self.wait()
        assert {self.stored(house) for house in self.houses} == {last}
        self.check_model(last)
        return last

    def kill(self, *houses: Name, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to processes that run."""
        for house in houses:
            process = self._processes[house]
            if process.exitcode is None:
                assert process.pid is not None
                os.kill(process.pid, how)
        for house in houses if how == signal.SIGKILL else ():
            self._processes[house].join()

    def stop(self) -> None:
        """End what runs."""
        for process in self._processes.values():
            if process.exitcode is None:
                process.kill()
            process.join()

    def pid(self, house: Name) -> int:
        """Of its process."""
        found = self._processes[house].pid
        assert found is not None
        return found

    @property
    def keeping(self) -> list[Name]:
        """The parties that have a state of their own; the others follow their hub."""
        return [name for name, party in fresh(self.setup.case).items() if party.follows is None]

    def reached(self, house: Name) -> int:
        """The round of its newest state, or of its hub's if it keeps none."""
        return self.stored(fresh(self.setup.case)[house].follows or house)

    def stored(self, house: Name) -> int:
        """The round of its newest state; -1: it has none."""
        name = self.setup.houses[house][0]
        written = Store(self.setup.folder / name).read()
        return -1 if written is None else unpack(written, run=RUN, party=name).round

    def heard(self, house: Name, peer: Name) -> int:
        """The newest round that a peer has stored, by the newest state of the first party here; -1: it has none."""
        name = self.setup.houses[house][0]
        written = Store(self.setup.folder / name).read()
        return -1 if written is None else unpack(written, run=RUN, party=name).heard.get(peer, -1)

    def log(self, house: Name) -> str:
        """What it said."""
        path = Path(f"{self.setup.folder / house}.log")
        return path.read_text() if path.exists() else ""

    def change(self, **settings: Any) -> None:
        """Tell processes that start from now on something else."""
        self.setup = replace(self.setup, **settings)

    def check_model(self, rounds: int | None = None, engine: PartyByParty | None = None) -> None:
        """The undisturbed model and meter, to the bit; those of an engine, if there is one that has run as far."""
        parties = fresh(self.setup.case)
        for name, party in parties.items():
            written = Store(self.setup.folder / name).read()
            assert written is not None
            party.load(unpack(written, run=RUN, party=name).value)
        if engine is None:
            weights, meter = in_memory(self.setup.case, rounds or self.setup.rounds)
        else:
            weights, meter = engine.weights, engine.meter
        assert all(map(torch.equal, model_of(parties), weights)), "the model is another one"
        assert total(party.meter for party in parties.values()) == meter, "other bytes are counted"

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _codes(self) -> dict[Name, tuple[int | None, str]]:
        return {house: (one.exitcode, self.log(house)) for house, one in self._processes.items()}
