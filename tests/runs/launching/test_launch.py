"""Parties as processes: the run directory of `train`, the model of parties in memory to the bit, crashes or not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from crosshatch.errors import ConfigError
from crosshatch.runs.config import Config, read_config
from crosshatch.runs.launching.followed import Followed, distance
from crosshatch.runs.launching.launch import ending, launch
from crosshatch.runs.train import train
from tests.runs.launching.kinds import KINDS, config_of
from tests.runs.launching.test_kinds import engine_of, stored


def check_as_in_memory(config: Config, out: Path) -> None:
    engine = engine_of(read_config(out / "config.toml"))
    for _ in range(config.run.rounds):
        engine.run_round()
    weights, meter = engine.weights, engine.meter
    found, sent = stored(out, engine_of(read_config(out / "config.toml")).parties, config.run.rounds)
    assert all(map(torch.equal, found, weights))
    assert sent == meter


def check_as_trained(config: Config, out: Path, other: Path) -> None:
    """Metrics, bytes and simulated seconds as those of the simulator."""
    train(config, out=other)
    ours, theirs = (
        [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()] for path in (out, other)
    )
    assert len(ours) == len(theirs) == 1 + config.run.rounds // 5
    for one, two in zip(ours, theirs, strict=True):
        assert one.keys() == two.keys()
        for name in one.keys() - {"wall_seconds"}:
            assert one[name] == pytest.approx(two[name], abs=1e-12), name
    summaries = [json.loads((path / "summary.json").read_text()) for path in (out, other)]
    for name in ("bytes", "messages", "bytes_by_link", "bytes_by_exchange", "federation", "cost"):
        assert summaries[0].get(name) == summaries[1].get(name), name


def test_launched_as_trained_and_as_in_memory(tmp_path: Path) -> None:
    config = config_of(tmp_path, "TDCD")
    assert launch(config, out=tmp_path / "launched").finished
    check_as_trained(config, tmp_path / "launched", tmp_path / "trained")
    check_as_in_memory(config, tmp_path / "launched")
    for home in (tmp_path / "launched" / "parties").iterdir():
        assert home.stat().st_mode & 0o077 == 0
        assert not is_alive(int((home / "pid").read_text()))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


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


def kill(out: Path, house: str) -> None:
    os.kill(int((out / "parties" / house / "pid").read_text()), signal.SIGKILL)


@pytest.mark.slow
def test_killed_processes_leave_no_trace(tmp_path: Path) -> None:
    config, out = config_of(tmp_path, "error feedback, held", "run.rounds=60"), tmp_path / "out"
    houses = ["client-0-0-1", "hub-0-1", "client-0-1-0", "hub-0-0"]
    with running(tmp_path, out, *KINDS["error feedback, held"], "run.rounds=60") as process:
        for round, some in ((10, houses[:1]), (20, houses[1:2]), (30, houses[2:]), (40, houses)):
            wait_for(out / "parties" / "hub-0-0" / "hub-0-0" / f"state-{round}", process)
            for house in some:
                kill(out, house)
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    assert b"is started again" in said
    check_as_in_memory(config, out)


@pytest.mark.slow
def test_no_orphans_when_the_launcher_is_killed_and_the_run_goes_on(tmp_path: Path) -> None:
    config, out = config_of(tmp_path, "TDCD", "run.rounds=60"), tmp_path / "out"
    with running(tmp_path, out, "run.rounds=60") as process:
        wait_for(out / "parties" / "hub-0-0" / "hub-0-0" / "state-20", process)
        pids = [int(path.read_text()) for path in (out / "parties").glob("*/pid")]
        process.kill()
        process.wait()
    pause = threading.Event()
    for _ in range(1000):
        if not any(map(is_alive, pids)):
            break
        pause.wait(0.01)
    assert not any(map(is_alive, pids))
    with running(tmp_path, out, "run.rounds=60", resume=True) as process:
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    check_as_in_memory(config, out)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (("algorithm.name=central",), "has no parties"),
        (("algorithm.name=jfl", "model.fusion=head"), "pairs"),
        (
            (
                "algorithm.name=tiered",
                "algorithm.tiers=V(4) H(2) H(1)",
                "federation.clients=4",
                "federation.branches=2",
            ),
            "branches",
        ),
        (
            (
                "algorithm.step_size={kind = 'adaptive', value = 0.1, rho = 1.0, delta_squared = 0.5, every = 2}",
                "algorithm.name=hsgd",
                "model.fusion=head",
                "federation.groups=2",
            ),
            "adaptive",
        ),
        (("run.record_messages=true",), "recording"),
    ],
)
def test_what_is_not_launched_is_refused(tmp_path: Path, changes: tuple[str, ...], why: str) -> None:
    path = tmp_path / "refused.toml"
    path.write_text('data = {name = "breast_cancer"}\nalgorithm = {name = "tdcd"}\nrun = {rounds = 2, threads = 1}')
    with pytest.raises(ConfigError, match=f"crosshatch launch: .*{why}.*: use crosshatch train"):
        launch(read_config(path, changes), out=tmp_path / "out")
    assert not (tmp_path / "out" / "parties").exists()


@pytest.mark.parametrize(
    ("ours", "theirs", "apart"),
    [
        ([[1e14, 2e14], [3.0]], [[1e14, 2.5e14], [3.0]], 0.2),
        ([[0.0, 0.0], []], [[0.0, 0.0], []], 0.0),
        ([[1e308, -1e308]], [[-1e308, -1e308]], 2.0),
        ([[1.0, float("nan")]], [[1.0, 2.0]], float("inf")),
        ([[1.0, 2.0]], [[1.0, float("inf")]], float("inf")),
        ([[4.0, float("nan")]], [[3.0, float("inf")]], 0.25),
    ],
)
def test_models_are_compared_relative_to_their_size(
    ours: list[list[float]], theirs: list[list[float]], apart: float
) -> None:
    one, two = ([torch.tensor(block, dtype=torch.float64) for block in model] for model in (ours, theirs))
    assert distance(one, two) == distance(two, one) == pytest.approx(apart)


def test_what_a_run_ends_with() -> None:
    followed = Followed.__new__(Followed)
    followed.furthest, followed.is_far = None, False
    assert "no round was compared" in ending(2, followed)
    followed.furthest = 2e-15
    assert "within 2.0e-15 of the simulator's, relative to its largest weight, in all rounds compared" in ending(
        2, followed
    )
    followed.furthest, followed.is_far = 0.5, True
    assert "more than by rounding" in ending(2, followed)
