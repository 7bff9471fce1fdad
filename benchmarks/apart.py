"""A table larger than the driver may hold: two workers read it apart, and each process says how much memory it took.

    python -m benchmarks.apart make FILE [--rows 20000000]
    python -m benchmarks.apart train FILE [--rows ...] [--rounds 20]

The table has 30 columns of numbers in Parquet, 15 for each of two silos; `train` prints a line per process, in MB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

COLUMNS, AT_ONCE = 30, 500_000
CONFIG = """
data = {{path = "{path}", label = "label", test_fraction = 0.005}}
federation = {{silos = 2, clients = 20}}
model = {{block = "mlp", hidden = [16]}}
algorithm = {{name = "tdcd", local_steps = 5, step_size = 0.1, batch_size = 20000}}
evaluate = {{every = {rounds}, train_samples = 100000}}
run = {{rounds = {rounds}, threads = 1, workers = 2, load = "apart"}}
"""


def make(path: Path, rows: int) -> None:
    """Standard normal columns, and labels by a few of them; written some rows at a time."""
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    weights = np.random.default_rng(0).normal(size=COLUMNS)
    for number, low in enumerate(range(0, rows, AT_ONCE)):
        random = np.random.default_rng((1, number))
        x = random.standard_normal((min(AT_ONCE, rows - low), COLUMNS), dtype=np.float32)
        y = (x @ weights + random.standard_normal(len(x)) > 0).astype(np.int8)
        frame = pl.DataFrame({f"x{k}": x[:, k] for k in range(COLUMNS)} | {"label": y})
        frame.write_parquet(folder / f"{number:05}.parquet", compression="uncompressed")
    pl.scan_parquet(folder / "*.parquet").sink_parquet(path, compression="uncompressed", row_group_size=100_000)
    for piece in folder.iterdir():
        piece.unlink()
    folder.rmdir()


def train(path: Path, rounds: int) -> Iterator[str]:
    """What the run's processes held at most: the driver, and whoever descends from it."""
    with tempfile.TemporaryDirectory(dir=path.parent) as home:
        config = Path(home, "large.toml")
        config.write_text(CONFIG.format(path=path.resolve(), rounds=rounds))
        words = [sys.executable, "-m", "crosshatch", "train", str(config), "--out", f"{home}/out", "--quiet"]
        began = time.perf_counter()
        driver = subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"})
        most: dict[int, tuple[str, int]] = {}
        while driver.poll() is None:
            most |= {one: found for one in _below(driver.pid) if (found := _peak(one)) is not None}
            time.sleep(0.2)
        yield f"exit code {driver.returncode} after {time.perf_counter() - began:.0f} s"
        metrics = Path(home, "out", "metrics.jsonl")
        yield metrics.read_text().splitlines()[-1] if metrics.is_file() else "no evaluation"
        for one, (name, size) in sorted(most.items(), key=lambda item: -item[1][1])[:8]:
            yield f"{size:6} MB at most: {'driver' if one == driver.pid else name}"


def _below(process: int) -> Iterator[int]:
    yield process
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from _below(int(child))


def _peak(process: int) -> tuple[str, int] | None:
    """The name of a process and the most memory it ever had, in MB."""
    try:
        words = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        name = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].decode() or words["Name"].strip()
        return name, int(words["VmHWM"].split()[0]) * 1024 // 10**6
    except (OSError, KeyError):  # it has ended, or is about to
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("make", "train"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    if given.what == "make":
        make(given.file, given.rows)
    else:
        for line in train(given.file, given.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
