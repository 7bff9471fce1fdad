"""What the processes of a launched run take: memory with what they share counted once, and time until they are up.

`python -m benchmarks.runtime.footprint`
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CONFIG = """
data = {name = "breast_cancer"}
federation = {silos = 2, clients = 4}
algorithm = {name = "tdcd", local_steps = 1, batch_size = 64, step_size = 0.1}
evaluate = {every = 5}
run = {rounds = 100_000, threads = 1}
"""
HEAD = (
    "| processes | how many | MB together | MB of the largest, all it shares included | processor seconds until up "
    "| without importing torch | seconds from the first start until up | as many imports of torch side by side |"
)
_TICK = os.sysconf("SC_CLK_TCK")
_DEADLINE = 300.0  # seconds
_HUBS = ("hub-0-0", "hub-0-1")  # their states have what all clients have taken part in
_ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def megabytes(pid: int, kind: str = "Pss") -> float:
    """Memory of a process, of what it shares its part; or all of it ("Rss")."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1.024e-3 * next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:"))


def processor_seconds(pid: int) -> float:
    """That a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


@contextmanager
def launched(folder: Path, processes: str) -> Iterator[tuple[dict[str, int], float]]:
    """The process ids of a launched run by name, once all have been evaluated, and the seconds that took.

    They count from the start of the first process on: what is divided and written before is not starting.
    """
    (folder / "run.toml").write_text(CONFIG)
    parties = folder / "out" / "parties"
    command = [sys.executable, "-m", "crosshatch", "launch", str(folder / "run.toml"), "--out", str(folder / "out")]
    with subprocess.Popen([*command, "--quiet", "--set", f"run.processes={processes}"]) as launcher:
        try:
            wait_until(lambda: any(parties.glob("*/pid")), launcher)
            began = time.monotonic()
            wait_until(lambda: all(any(parties.glob(f"{hub}/*/state-*")) for hub in _HUBS), launcher)
            seconds = time.monotonic() - began
            yield {path.parent.name: int(path.read_text()) for path in sorted(parties.glob("*/pid"))}, seconds
        finally:
            launcher.kill()


def wait_until(there: Callable[[], bool], launcher: subprocess.Popen[bytes]) -> None:
    """Look again and again."""
    until = time.monotonic() + _DEADLINE
    while not there():
        if launcher.poll() is not None or time.monotonic() > until:
            raise SystemExit("the run did not come up")
        time.sleep(0.02)


def torch_alone() -> float:
    """Seconds of processor time to import torch."""
    program = "import time, torch; print(time.process_time())"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(found.stdout)


def torch_side_by_side(processes: int) -> float:
    """Seconds until so many processes have imported torch."""
    began = time.monotonic()
    running = [subprocess.Popen([sys.executable, "-c", "import torch"], env=_ONE_THREAD) for _ in range(processes)]
    for one in running:
        one.wait()
    return time.monotonic() - began


def main() -> None:
    """Print the table."""
    alone = torch_alone()
    print(f"importing torch alone: {alone:.2f} s of processor time\n\n{HEAD}\n|---{7 * '|---:'}|", flush=True)
    for processes in ("party", "silo"):
        with TemporaryDirectory() as folder, launched(Path(folder), processes) as (pids, seconds):
            used = sum(map(processor_seconds, pids.values()))
            together, largest = sum(map(megabytes, pids.values())), max(megabytes(pid, "Rss") for pid in pids.values())
        print(
            f"| {processes} | {len(pids)} | {together:.0f} | {largest:.0f} | {used:.1f} "
            f"| {used - alone * len(pids):.1f} | {seconds:.1f} | {torch_side_by_side(len(pids)):.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
