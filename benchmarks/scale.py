"""Many clients: memory and time of a round with 2 x 100,000 clients, beside one with 2 x 100.

    python -m benchmarks.scale CLIENTS

prints peak memory in MB and milliseconds per round, after the first ones; a process each, so that peaks do not mix.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import BATCH, Case
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.blocks.built_in import Linear

FEW, MANY = 100, 100_000
_SAMPLES = 200_000
_FEATURES = 357


@dataclass(frozen=True)
class Scale:
    """What one federation needs."""

    clients: int
    megabytes: float
    milliseconds: float


def measure(clients: int, local_steps: int = 10, rounds: int = 30) -> Scale:
    """Run rounds in this process."""
    case = Case("scale", 2, clients, (_FEATURES,), lambda: Linear((_FEATURES,), 1), samples=_SAMPLES)
    algorithm = TDCD(local_steps=local_steps, batch_size=BATCH)
    simulator = Simulator(case.data(), case.task(), algorithm, seed=1, threads=1)
    times = []
    for _ in range(rounds):
        start = time.process_time()
        simulator.run_round()
        times.append(time.process_time() - start)
    return Scale(clients, peak_megabytes(), 1000 * statistics.median(times[5:]))


def peak_megabytes() -> float:
    """The most memory this process has held; the rusage of a process begins with that of the one which started it."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run() -> tuple[Scale, Scale]:
    """Few clients and many, in turn, best of three each."""
    found: dict[int, list[Scale]] = {FEW: [], MANY: []}
    for _ in range(3):
        for clients, seen in found.items():
            command = [sys.executable, "-m", "benchmarks.scale", str(clients)]
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            seen.append(Scale(clients, float(out[0]), float(out[1])))
    few, many = (min(seen, key=lambda scale: scale.milliseconds) for seen in found.values())
    return few, many


def table(few: Scale, many: Scale) -> str:
    """Both as a markdown table."""
    lines = ["| clients | peak memory, MB | ms per round | times 2 x 100 clients |", "|---|---:|---:|---:|"]
    lines += [
        f"| 2 x {s.clients:,} | {s.megabytes:.0f} | {s.milliseconds:.1f} | {s.milliseconds / few.milliseconds:.2f} |"
        for s in (few, many)
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    scale = measure(int(sys.argv[1]))
    print(scale.megabytes, scale.milliseconds)
