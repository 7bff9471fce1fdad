"""Faults by chance for as long as one likes, and whether the model is the undisturbed one in the end.

    python -m tests.runtime.soak --minutes 30 --seed 1 --case ABCD

Processes are killed (one, some, all), frozen and cut off, every ten seconds on average. Beside them the same parties
run in memory, undisturbed, up to the round that somebody has stored. Printed are the faults, the longest time in which
nobody stored a later round, the memory of processes that have run for a minute, and whether model and meter are equal.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Timer

import torch

from tests.runtime.fleet import Fleet, engine_of
from tests.runtime.proxy import Proxies, Weather

_ROUNDS = 10_000_000  # more than there is time for
_OLD = 60.0  # seconds: a process of this age has taken the memory that it needs
_LOOK = 0.05  # seconds between two looks
FAULTS = ("one", "one", "one", "some", "all", "freeze", "cut", "cut", "swallow", "slow", "stall")


@dataclass
class Soak:
    """One run with faults."""

    case: str
    minutes: float
    seed: int
    every: float = 10.0
    wait: float = 60.0
    faults: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0  # seconds without a later round on anybody's disk
    memory: list[tuple[float, int]] = field(default_factory=list)  # minutes, MB of the largest process that is old

    def run(self, folder: Path) -> int:
        """The round at which all were stopped; an AssertionError where the model is another one."""
        random, in_memory = Random(self.seed), engine_of(self.case)
        with (
            Proxies(self.seed) as network,
            Fleet(self.case, folder, rounds=_ROUNDS, through=network.before, wait=self.wait) as fleet,
        ):
            fleet.start()
            began = moved = time.monotonic()
            born, rounds, looked, next_fault = dict.fromkeys(fleet.houses, began), -1, began, began + 10.0
            timers: list[Timer] = []
            while (now := time.monotonic()) < began + 60 * self.minutes:
                restarts = fleet.restarts
                fleet.check()
                if now >= next_fault:
                    next_fault = now + random.expovariate(1 / self.every)
                    struck = self._strike(random.choice(FAULTS), random, fleet, network, timers)
                    born |= dict.fromkeys(struck, now)
                assert fleet.restarts >= restarts
                if now >= looked + 1.0:
                    looked, newest = now, max(fleet.stored(house) for house in fleet.houses)
                    if newest > rounds:
                        rounds, moved = newest, now
                    self.longest = max(self.longest, now - moved)
                    old = [house for house in fleet.houses if now - born[house] > _OLD]
                    sizes = [size for house in old if (size := resident(fleet.pid(house)))]
                    if sizes:
                        self.memory.append(((now - began) / 60, max(sizes)))
                while in_memory.round < rounds and time.monotonic() < now + _LOOK:
                    in_memory.run_round()
                time.sleep(max(0.0, now + _LOOK - time.monotonic()))
            for timer in timers:
                timer.join()
            network.weather = Weather()
            fleet.wait(lambda: all(fleet.stored(house) >= 0 for house in fleet.houses), 60)
            last = fleet.hold()
            fleet.wait(seconds=2 * self.wait)
            self.faults["restarts of processes"] = fleet.restarts
            sys.stdout.write(f"{self.told(last)}\n")
            sys.stdout.flush()
            while in_memory.round < last:
                in_memory.run_round()
            fleet.check_model(last, in_memory)
            return last

    def _strike(self, what: str, random: Random, fleet: Fleet, network: Proxies, timers: list[Timer]) -> list[str]:
        """One fault; who was killed by it."""
        self.faults[what] += 1
        some = random.sample(fleet.houses, {"some": len(fleet.houses) // 2, "all": len(fleet.houses)}.get(what, 1))
        if what in ("one", "some", "all"):
            fleet.kill(*some)
            return some
        if what == "freeze":
            fleet.kill(*some, how=signal.SIGSTOP)
            timers.append(Timer(random.uniform(1, 15), lambda: fleet.kill(*some, how=signal.SIGCONT)))
            timers[-1].start()
        elif what == "cut":
            network.cut()
        elif what == "swallow":
            network.swallow()
        else:
            network.weather = Weather(delay=0.2) if what == "slow" else Weather(stall=0.05, held=2.0)
            timers.append(Timer(random.uniform(1, 10), lambda: setattr(network, "weather", Weather())))
            timers[-1].start()
        return []

    def told(self, last: int) -> str:
        """What to print."""
        lines = [f"{self.case}, seed {self.seed}: {self.minutes:g} minutes, {last} rounds"]
        lines.append(", ".join(f"{name} {count}" for name, count in sorted(self.faults.items())))
        lines.append(f"longest time without a stored round: {self.longest:.0f} s, run.wait {self.wait:.0f} s")
        for part in range(4):
            low, high = part * self.minutes / 4, (part + 1) * self.minutes / 4
            sizes = [size for when, size in self.memory if low <= when < high]
            if sizes:
                lines.append(
                    f"minutes {low:.0f} to {high:.0f}: largest process older than a minute {max(sizes)} MB, "
                    f"median {statistics.median(sizes):.0f} MB"
                )
        return "\n".join(lines)


def resident(pid: int) -> int | None:
    """MB that a process holds now; None: it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(found[0].split()[1]) // 1024 if found else None


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", default="ABCD")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    soak = Soak(asked.case, asked.minutes, asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        soak.run(Path(folder))
    sys.stdout.write("model and meter equal those of parties in memory\n")


if __name__ == "__main__":
    main()
