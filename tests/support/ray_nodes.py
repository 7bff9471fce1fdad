"""Nodes of a Ray cluster on this machine, bound to loopback; each is a process group that ends with its test."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.command_line import environment
from tests.support.whole_sweeps import wait_until


def surroundings() -> dict[str, str]:
    """Without this Ray takes the machine's address in the network for that of loopback."""
    return environment() | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}


@contextmanager
def ray_head(folder: Path, *, cores: int) -> Iterator[tuple[str, int]]:
    """The address of a new cluster, and the number of its process."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    with _node(folder / "head.txt", "--head", f"--port={port}", "--include-dashboard=false", cores=cores) as process:
        yield f"127.0.0.1:{port}", process


@contextmanager
def _node(log: Path, *options: str, cores: int) -> Iterator[int]:
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--node-ip-address=127.0.0.1",
             f"--num-cpus={cores}", *options],
            env=surroundings(), stdout=file, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_until(lambda: "Ray runtime started" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
