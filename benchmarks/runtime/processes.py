"""Processes that take turns with whatever else is raced: between their turns they wait."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec

from benchmarks.runtime.noted import Said, peers_in
from benchmarks.runtime.party import PLAN, Plan
from benchmarks.runtime.settings import Setting
from crosshatch.parties.line import Name
from crosshatch.runs.launching.seating import dials, free_ports
from crosshatch.runtime.identity import Identity


class Processes:
    """The parties of a setting, a process each, or their messages alone; `said` is what each says in a round."""

    def __init__(
        self, setting: Setting, said: Mapping[Name, list[Said]], folder: Path, kind: str, *, turns: int,
        data: Path | None,
    ) -> None:  # fmt: skip
        identities = {name: Identity.make(name) for name in said}
        ports = free_ports(said)
        self._running: list[subprocess.Popen[str]] = []
        for name, mine in said.items():
            peers, home = peers_in(mine), folder / name
            plan = Plan(
                setting.name, name, {peer: identities[peer].certificate.decode() for peer in peers},
                {peer: f"127.0.0.1:{ports[peer]}" for peer in peers if dials(name, peer)},
                ports[name] if any(dials(peer, name) for peer in peers) else None,
                turns, None if data is None else str(data), kind, mine,
            )  # fmt: skip
            identities[name].write(home)
            (home / PLAN).write_bytes(msgspec.json.encode(plan))
            self._running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.runtime.party", str(home)], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
                )
            )  # fmt: skip
        self._used = self._read()

    def turn(self) -> float:
        """Seconds of processor time that all processes took for the rounds of a turn."""
        for one in self._running:
            _pipe(one.stdin).write("\n")
            _pipe(one.stdin).flush()
        before, self._used = self._used, self._read()
        return self._used - before

    def memory(self) -> int:
        """Bytes of memory of all processes, what they share counted once."""
        return sum(_proportional(one.pid) for one in self._running)

    def close(self) -> None:
        """End them."""
        for one in self._running:
            one.kill()
            one.wait()
            _pipe(one.stdin).close()
            _pipe(one.stdout).close()

    def _read(self) -> float:
        """What each has used when it waits."""
        return sum(float(_pipe(one.stdout).readline()) for one in self._running)


def _proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _pipe(one: IO[str] | None) -> IO[str]:
    assert one is not None
    return one
