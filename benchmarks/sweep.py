"""How much sooner a sweep of 60 runs ends with two jobs than with one; for a machine with two idle cores."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

CONFIG = """
[data]
name = "digits"
validation = 0.2
[federation]
split = "halves"
clients = 4
[model]
block = "mlp"
hidden = [32]
[algorithm]
name = "tdcd"
batch_size = 256
[evaluate]
every = 10
[run]
rounds = {rounds}
"""
GRID = ("algorithm.step_size=0.03,0.1,0.2,0.3", "algorithm.local_steps=1,5,10")


def seconds(home: Path, jobs: int, turn: int) -> float:
    """From the start of the command to its end."""
    grid = [word for text in GRID for word in ("--grid", text)]
    options = ["--seeds", "5", "--jobs", str(jobs), "--out", str(home / f"{jobs}-{turn}"), "--quiet"]
    start = time.perf_counter()
    config = str(home / "digits.toml")
    subprocess.run([sys.executable, "-m", "crosshatch", "sweep", config, *grid, *options], check=True)
    return time.perf_counter() - start


def main() -> None:
    """Print a line per turn, and the median of the ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=100, help="of every run")
    options = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "digits.toml").write_text(CONFIG.format(rounds=options.rounds), encoding="utf-8")
        for turn in range(options.turns):
            one, two = (seconds(home, jobs, turn) for jobs in (1, 2))
            same = (home / f"1-{turn}" / "table.csv").read_bytes() == (home / f"2-{turn}" / "table.csv").read_bytes()
            ratios.append(one / two)
            table = "the same table" if same else "ANOTHER TABLE"
            load = os.getloadavg()[0]
            print(f"1 job {one:.1f} s, 2 jobs {two:.1f} s: {one / two:.2f} times as fast, {table}, load {load:.1f}")
    print(f"median: {median(ratios):.2f} times as fast")


if __name__ == "__main__":
    main()
