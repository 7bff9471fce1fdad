"""The same sweep in local processes and on a Ray cluster of this machine, bound to loopback: the same table."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.ray_nodes import ray_head, surroundings
from tests.support.small_studies import write_config, write_rows
from tests.support.whole_sweeps import CONFIG, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[ray]'"),
]
SWEEP = ("--grid", "algorithm.step_size=0.01,0.3,1e9", "--grid", "algorithm.batch_size=32,500", "--seeds", "2")


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    with ray_head(tmp_path_factory.mktemp("log"), cores=2) as (address, _):
        yield address


def sweep(home: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crosshatch", "sweep", "small.toml", *options],
        cwd=home, env=surroundings(), capture_output=True, text=True,
    )  # fmt: skip


def test_same_table(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(CONFIG)
    here = sweep(tmp_path, *SWEEP, "--out", "here")
    there = sweep(tmp_path, *SWEEP, "--out", "there", "--ray", cluster)
    assert (here.returncode, there.returncode) == (1, 1), here.stderr + there.stderr  # one batch is too large
    assert (tmp_path / "there" / "table.csv").read_text().count("diverged 2 of 2") == 1
    for name in ("table.csv", "chosen.toml"):  # whose first line names the folder
        found = (tmp_path / "there" / name).read_text().replace("see there/", "see here/")
        assert found == (tmp_path / "here" / name).read_text()
    # a run that finished there is not repeated, here or there
    again = sweep(tmp_path, *SWEEP, "--out", "there", "--jobs", "1")
    assert "12 runs, 6 of which have finished" in again.stdout, again.stderr  # all but those that are refused


def test_a_study_says_the_same(cluster: str, tmp_path: Path) -> None:
    """Its runs, step sizes that follow from them, and boosted trees beside."""
    write_rows(tmp_path / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    write_config(tmp_path, rounds=15, algorithm="fedbcd")
    command = [sys.executable, "-m", "crosshatch", "study", "made.toml", "--seeds", "2", "--steps", "0.3,1"]
    for more in (("--out", "here", "--jobs", "2"), ("--out", "there", "--ray", cluster)):
        ended = subprocess.run(
            [*command, *more], cwd=tmp_path, env=surroundings(), capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr == ""
    for name in ("table.csv", "scores.csv", "result.json"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1", "an address is HOST:PORT or auto"),
        ("127.0.0.1:no", "an address is HOST:PORT or auto"),
        ("local", "an address is HOST:PORT or auto"),
        (":6379", "an address is HOST:PORT or auto"),
        ("127.0.0.1:1", "no cluster answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:1", "no cluster answers at 127.0.0.1:1"),
    ],
)
def test_refused_addresses(tmp_path: Path, address: str, words: str) -> None:
    (tmp_path / "small.toml").write_text(CONFIG)
    for workers in ((), ("--workers", "2")):
        ended = sweep(tmp_path, *SWEEP, "--ray", address, *workers)
        assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
        assert words in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_asked_to_stop(cluster: str, tmp_path: Path) -> None:
    """A task that is cancelled keeps its checkpoint and its model, as after Ctrl-C."""
    (tmp_path / "small.toml").write_text(CONFIG)
    options = ("--grid", "algorithm.step_size=0.1,0.2", "--set", "run.rounds=1000000", "--out", "out", "--ray", cluster)
    process = subprocess.Popen(
        [sys.executable, "-m", "crosshatch", "sweep", "small.toml", *options],
        cwd=tmp_path, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_until(lambda: len(list(tmp_path.glob("out/runs/*/checkpoint/state.safetensors"))) == 2)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate()
    finally:
        process.kill()  # the runs end with their cluster
    assert process.returncode == 130
    assert err.startswith("stopped; runs under way keep their checkpoints"), err
    assert len(list(tmp_path.glob("out/runs/*/model/model.json"))) == 2
