"""Runs on Ray's workers, in processes that tests look at and end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from tests.support.command_line import environment

CONFIG = """
data = {name = "breast_cancer"}
federation = {silos = 2, clients = 5}
algorithm = {name = "tdcd", local_steps = 4, step_size = 0.1, batch_size = 64}
evaluate = {every = 20}
run = {rounds = 60, seed = 7, threads = 1}
"""
APART = """
data = {path = "rows.parquet", label = "label"}
federation = {silos = 2, clients = 5}
algorithm = {name = "tdcd", local_steps = 4, step_size = 0.1, batch_size = 64}
evaluate = {every = 20}
run = {rounds = 60, seed = 7, threads = 1, load = "apart"}
"""


def below(process: int) -> Iterator[int]:
    """A process and all that descend from it."""
    yield process
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if parent == process:
            yield from below(int(path.parent.name))


def listening(processes: Sequence[int]) -> set[str]:
    """The addresses on which these processes wait for others, as the kernel writes them."""
    sockets: set[str] = set()
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            try:
                sockets.add(os.readlink(link))
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
                found.add(words[1].partition(":")[0])
    return found


def crosshatch(
    home: Path, *words: str, config: str = "small.toml", command: str = "train"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crosshatch", command, config, *words],
        cwd=home, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


@contextmanager
def under_way(home: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Training into the folder `out`, which ends with the test at the latest."""
    with subprocess.Popen(
        [sys.executable, "-m", "crosshatch", "train", "small.toml", *words, "--out", "out", "--quiet"],
        cwd=home, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def evaluations(home: Path) -> int:
    """So many of the run in `out`."""
    metrics = home / "out" / "metrics.jsonl"
    return metrics.read_text().count("\n") if metrics.is_file() else 0


def require_same_in_the_end(home: Path, *, workers: int) -> None:
    """The run in `out` goes on to the model of one that nobody disturbed."""
    words = ("--resume", "--set", f"run.rounds={20 * (evaluations(home) + 1)}")
    for name, count in (("out", workers), ("whole", 0)):
        ended = crosshatch(home, "--workers", str(count), "--out", name, *words)
        assert ended.returncode == 0, ended.stderr
    assert model(home / "out") == model(home / "whole")
    assert len(model(home / "out")) == 2


def model(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((run / "model").glob("*.safetensors"))}


def raylets(processes: Sequence[int]) -> list[int]:
    """Those of them that keep a node of Ray running."""
    return [one for one in processes if "raylet/raylet" in Path(f"/proc/{one}/cmdline").read_text()]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def write_apart(home: Path) -> None:
    """A table, and a config that has workers read it."""
    x = np.random.default_rng(1).normal(size=(900, 6))
    frame = pl.DataFrame({f"x{k}": x[:, k] for k in range(6)} | {"label": (x.sum(1) > 0).astype(int)})
    frame.write_parquet(home / "rows.parquet")
    (home / "small.toml").write_text(APART)
