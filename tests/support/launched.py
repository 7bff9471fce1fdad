"""Launched runs: started, waited for, and held against the same in one process."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from crosshatch.runs.config import Config, read_config
from crosshatch.runs.train import train
from tests.support.launched_kinds import engine_of, stored


def check_as_in_memory(config: Config, out: Path) -> None:
    engine = engine_of(read_config(out / "config.toml"))
    for _ in range(config.run.rounds):
        engine.run_round()
    weights, meter = engine.weights, engine.meter
    found, sent = stored(out, engine_of(read_config(out / "config.toml")).parties, config.run.rounds)
    assert all(map(torch.equal, found, weights))
    assert sent == meter


SAME = (
    "rounds", "iterations", "final", "best", "best_round", "bytes", "messages", "bytes_by_link", "bytes_by_exchange",
    "sim_seconds", "targets", "federation", "cost", "test_rows", "noise", "decisions", "per_client", "diverged",
)  # fmt: skip


def near(one: object, two: object, where: str) -> None:
    """Equal, numbers to rounding; times of this machine aside."""
    if isinstance(one, dict) and isinstance(two, dict):
        assert one.keys() - {"real_seconds"} == two.keys() - {"real_seconds"}, where
        for key in one.keys() - {"real_seconds", "wall_seconds"}:
            near(one[key], two[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(two, list):
        assert len(one) == len(two), where
        for n, pair in enumerate(zip(one, two, strict=True)):
            near(*pair, f"{where}.{n}")
    elif isinstance(one, float):
        assert one == pytest.approx(two, rel=1e-12, abs=1e-12), where
    else:
        assert one == two, where


def check_as_trained(config: Config, out: Path, other: Path) -> None:
    """Metrics, best and stopping round, bytes and simulated seconds as those of the simulator."""
    train(config, out=other)
    ours, theirs = (
        [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()] for path in (out, other)
    )
    near(ours, theirs, "metrics.jsonl")
    assert all(row["real_seconds"] > 0 for row in ours)
    one, two = (json.loads((path / "summary.json").read_text()) for path in (out, other))
    of_the_runs = [tomllib.loads((path / "config.toml").read_text())["algorithm"] for path in (out, other)]
    assert of_the_runs[0] == of_the_runs[1]
    near({key: one.get(key) for key in SAME}, {key: two.get(key) for key in SAME}, "summary.json")
    for folder in ("model", "best_model", "."):  # here: the scores, where they are kept
        files = sorted(path.name for path in (other / folder).glob("*.safetensors"))
        assert files == sorted(path.name for path in (out / folder).glob("*.safetensors"))
        for file in files:
            found, expected = (load_file(path / folder / file) for path in (out, other))
            for name, tensor in expected.items():
                torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-12)


@contextmanager
def running(
    folder: Path, out: Path, *changes: str, resume: bool = False, further: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """`crosshatch launch` in a process of its own."""
    config = folder / "launched.toml"
    command = [sys.executable, "-m", "crosshatch", "launch", str(config), "--out", str(out), "--quiet"]
    command += [*(["--resume"] if resume else []), *further, *(part for one in changes for part in ("--set", one))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until a file is there."""
    pause = threading.Event()
    for _ in range(12_000):
        if path.exists():
            return
        assert process.poll() is None, process.stdout and process.stdout.read()
        pause.wait(0.01)
    raise AssertionError(f"{path} is not there after two minutes")
