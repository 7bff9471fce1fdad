"""Workers as Ray's actors on this machine, bound to loopback: the bits of pieces in one process, whoever dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosshatch.errors import RunError
from crosshatch.testing.federations import optimiser_cases, vertical_cases
from crosshatch.workers import ray_crew
from crosshatch.workers.crew import InlineWorkers
from crosshatch.workers.ray_crew import RayWorkers
from tests.support.command_line import environment
from tests.support.ray_nodes import surroundings
from tests.support.whole_sweeps import wait_until
from tests.workers.hands import same_bits, simulate
from tests.workers.on_ray import CONFIG, below, crosshatch, is_running, listening, model, raylets, write_apart

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[ray]'"),
]
CASES = (*vertical_cases()[::9], optimiser_cases()[0])
ON_A_GRAPH = """
data = {name = "breast_cancer"}
algorithm = {name = "mtcd", step_size = 0.001}
run = {rounds = 60}
"""
OWN_BLOCK = """
from torch import nn

class Mine(nn.Module):
    def __init__(self, input_shape, outputs):
        super().__init__()
        self.inner = nn.Linear(input_shape[0], outputs)

    def forward(self, x):
        return self.inner(x).tanh()
"""


def test_same_bits_and_only_loopback() -> None:
    before = set(below(os.getpid()))
    wanted = [simulate(case, InlineWorkers()) for case in CASES]
    for count in (1, 2, 3):
        for case, one in zip(CASES[count - 1 :: 3], wanted[count - 1 :: 3], strict=True):
            with RayWorkers(count) as crew:
                assert same_bits(simulate(case, crew), one), case.name
                everybody = set(below(os.getpid()))
                assert len(everybody) > len(before) + count
                addresses = listening(list(everybody - before))
                assert addresses
                assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}, addresses
                assert crew.spent.computing > 0
            wait_until(lambda: set(below(os.getpid())) <= before)


@pytest.mark.parametrize("victim", ["driver", "raylet"])
def test_a_driver_that_is_killed(tmp_path: Path, victim: str) -> None:
    """Its cluster ends with it; resumed, even with another number of workers, it ends with the undisturbed model.

    Without its own raylet a driver ends by itself.
    """
    (tmp_path / "small.toml").write_text(CONFIG)
    assert crosshatch(tmp_path, "--workers", "0", "--out", "whole").returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "crosshatch", "train", "small.toml", "--workers", "2", "--out", "out",
         "--quiet", "--set", "run.rounds=1000000"],
        cwd=tmp_path, env=environment(), start_new_session=True,
    )  # fmt: skip
    metrics = tmp_path / "out" / "metrics.jsonl"
    everybody: set[int] = set()
    try:
        wait_until(lambda: metrics.is_file() and metrics.read_text().count("\n") >= 3)
        everybody = set(below(process.pid))
        if victim == "raylet":
            (own,) = raylets(list(everybody))
            os.kill(own, signal.SIGKILL)
            assert process.wait(120) != 0
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not any(is_running(one) for one in everybody))
    done = metrics.read_text().count("\n")
    words = ("--set", f"run.rounds={20 * (done + 1)}")
    ended = crosshatch(tmp_path, "--workers", "1", "--out", "out", "--resume", *words)
    assert ended.returncode == 0, ended.stderr
    assert crosshatch(tmp_path, "--workers", "0", "--out", "whole", "--resume", *words).returncode == 0
    assert model(tmp_path / "out") == model(tmp_path / "whole")
    assert len(model(tmp_path / "out")) == 2


def test_a_block_of_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_BLOCK)
    (tmp_path / "small.toml").write_text(CONFIG + 'model = {block = "mine.py:Mine"}\n')
    for count in ("0", "2"):
        ended = crosshatch(tmp_path, "--workers", count, "--out", count)
        assert ended.returncode == 0, ended.stderr
    assert model(tmp_path / "0") == model(tmp_path / "2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ray", "127.0.0.1:1", "--workers", "2"), "--ray 127.0.0.1:1: no cluster answers at"),
        (("--ray", "127.0.0.1:1"), "is for workers: say how many by --workers"),
        (("--workers", "13"), "run.workers = 13 for run.pieces = 12"),
        (("--workers", "-1"), "run.workers = -1: must be at least 0"),
        (("--workers", str(10**20)), f"run.workers = {10**20}: that is more than a computer counts"),
        (("--workers", "1000000", "--set", "run.pieces=1000000"), "run.workers = 1000000: each takes 0.25 GB before"),
        (("--workers", "0", "--ray", "127.0.0.1:1"), "is for workers: say how many by --workers"),
        (("--workers", "2", "--set", "algorithm.tokens=1"), "sends along a graph: leave out run.workers"),
    ],
)
def test_refused(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    text = CONFIG if "tokens" not in words[-1] else ON_A_GRAPH
    (tmp_path / "small.toml").write_text(text)
    ended = crosshatch(tmp_path, *words)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert said in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_another_version_at_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ray_crew.versions()
    monkeypatch.setattr(ray_crew, "versions", lambda: found | {"torch": "0.1"})  # here, not in the workers
    with (
        RayWorkers(1) as crew,
        pytest.raises(RunError, match=r"worker 1 has torch .*, here it is 0\.1: install the same version there"),
    ):
        simulate(CASES[0], crew, rounds=0)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """A folder with a table and a config that has workers read it."""
    write_apart(tmp_path)
    return tmp_path


def test_rows_read_apart(apart: Path) -> None:
    """Also by a worker that begins anew, and by others than those that the run began with."""
    assert crosshatch(apart, "--workers", "0", "--out", "whole").returncode == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "crosshatch", "train", "small.toml", "--workers", "3", "--out", "out", "--quiet",
         "--set", "run.rounds=1000000"],
        cwd=apart, env=environment(), start_new_session=True,
    )  # fmt: skip
    metrics = apart / "out" / "metrics.jsonl"

    def lines() -> int:
        return metrics.read_text().count("\n") if metrics.is_file() else 0

    try:
        wait_until(lambda: lines() >= 2)
        actors = [one for one in below(process.pid) if "ray::Worker" in Path(f"/proc/{one}/cmdline").read_text()]
        assert len(actors) == 3
        os.kill(actors[1], signal.SIGKILL)
        before = lines()
        wait_until(lambda: lines() > before + 2)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()
    words = ("--set", f"run.rounds={20 * (lines() + 2)}")
    ended = crosshatch(apart, "--workers", "2", "--out", "out", "--resume", *words)
    assert ended.returncode == 0, ended.stderr
    assert crosshatch(apart, "--workers", "0", "--out", "whole", "--resume", *words).returncode == 0
    assert model(apart / "out") == model(apart / "whole")


@pytest.mark.parametrize("half_way", [False, True])
def test_a_file_that_a_worker_cannot_read(apart: Path, half_way: bool) -> None:
    """Nothing is in it, or one column is spoilt, which the driver does not read."""
    table, content = apart / "rows.parquet", bytearray(b"PAR1 and nothing else PAR1")
    if half_way:
        rows = pl.read_parquet(table)
        rows.write_parquet(table, compression="uncompressed")
        content = bytearray(table.read_bytes())
        begin = content.find(rows["x3"].to_numpy().tobytes()[:64])
        content[begin - 40 : begin] = bytes(40)
    table.write_bytes(content)
    ended = crosshatch(apart, "--workers", "2", "--out", "out")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert ended.stderr.startswith(f"error: worker 1: {table} is unreadable: ")
    assert not (apart / "out").exists()


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of two nodes on loopback: the first has room for two workers, the second for one."""
    for key, value in surroundings().items():
        monkeypatch.setenv(key, value)
    from ray.cluster_utils import Cluster

    first = {"num_cpus": 2, "node_ip_address": "127.0.0.1", "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=first)
    cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")
    yield cluster
    cluster.shutdown()


def test_a_second_node_that_is_killed(two_nodes: Any) -> None:
    """Its worker begins anew on the first."""
    case, before = CASES[0], set(below(os.getpid()))
    addresses = listening(list(before))
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}, addresses
    (second,) = two_nodes.worker_nodes
    with RayWorkers(2, address=two_nodes.address) as crew:
        simulator = simulate(case, crew, rounds=3)
        ask = lambda _: __import__("ray").get_runtime_context().get_node_id()  # noqa: E731 - travels, a name would not
        nodes = crew._ray.get([actor.__ray_call__.remote(ask) for actor in crew._actors])
        assert len(set(nodes)) == 2
        second.kill_raylet()
        while sum(crew.deaths) == 0 and simulator.round < 5000:
            simulator.run_round()
        assert sum(crew.deaths) == 1
        assert same_bits(simulator, simulate(case, InlineWorkers(), rounds=simulator.round))


def test_runs_of_a_sweep_with_workers(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(CONFIG)
    words = ("--workers", "2", "--grid", "algorithm.step_size=0.05,0.1", "--set", "data.validation=0.2")
    ended = crosshatch(tmp_path, *words, "--out", "swept", command="sweep")
    assert ended.returncode == 0, ended.stderr
    summaries = list((tmp_path / "swept" / "runs").glob("*/summary.json"))
    assert [json.loads(path.read_text())["workers"]["workers"] for path in summaries] == [2, 2]


def test_a_sweep_whose_raylet_is_killed(tmp_path: Path) -> None:
    """The run under way fails, the next one has a cluster of its own; the same command ends as if nothing had been."""
    (tmp_path / "small.toml").write_text(CONFIG)
    words = ["--grid", "algorithm.step_size=0.05,0.1", "--set", "data.validation=0.2", "--set", "run.rounds=600",
             "--jobs", "1"]  # fmt: skip
    whole = crosshatch(tmp_path, *words, "--workers", "0", "--out", "whole", command="sweep")
    assert whole.returncode == 0, whole.stderr
    words += ["--workers", "2", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "crosshatch", "sweep", "small.toml", *words, "--quiet"],
        cwd=tmp_path, env=environment(), start_new_session=True, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    runs = tmp_path / "out" / "runs"
    try:
        wait_until(lambda: any(path.read_text().count("\n") >= 3 for path in runs.glob("*/metrics.jsonl")))
        (own,) = raylets(list(below(process.pid)))
        os.kill(own, signal.SIGKILL)
        _, said = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1, said
    assert len(list(runs.glob("*/summary.json"))) == 1, said
    ended = crosshatch(tmp_path, *words, command="sweep")
    assert ended.returncode == 0, ended.stderr
    for run in (tmp_path / "whole" / "runs").iterdir():
        assert model(runs / run.name) == model(run)
        assert len(model(run)) == 2
