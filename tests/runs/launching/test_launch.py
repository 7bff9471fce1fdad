"""Parties as processes: the run directory of `train`, the model of parties in memory to the bit, crashes or not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from crosshatch.errors import ConfigError, DivergenceError, RunError
from crosshatch.runs.config import read_config
from crosshatch.runs.launching.launch import launch
from crosshatch.runs.train import train
from tests.runs.launching.kinds import BASE, KINDS, config_of
from tests.support.launched import check_as_in_memory, check_as_trained, running, wait_for


def test_launched_as_trained_and_as_in_memory(tmp_path: Path) -> None:
    config = config_of(tmp_path, "TDCD")
    assert launch(config, out=tmp_path / "launched").finished
    check_as_trained(config, tmp_path / "launched", tmp_path / "trained")
    check_as_in_memory(config, tmp_path / "launched")
    for home in (tmp_path / "launched" / "parties").iterdir():
        assert home.stat().st_mode & 0o077 == 0
        assert not is_alive(int((home / "pid").read_text()))


EVALUATED = {
    "validation rows, patience": ("data.validation=0.2", "run.patience=1", "evaluate.every=1", "run.rounds=40"),
    "labels held, clients by themselves": (
        "federation.labels=silo2", "evaluate.per_client=true", "evaluate.metrics=['auc','accuracy','loss']",
    ),
    "some test rows, stopped at a target": (
        "evaluate.test_samples=50", "evaluate.targets=['auc=0.97']", "run.stop_at_targets=true", "evaluate.every=1",
    ),
    "head, validation, training samples, free biases": (
        "model.fusion=head", "model.block=mlp", "data.validation=0.2", "evaluate.train_samples=100", "model.l2=0.1",
        "model.penalise_bias=false",
    ),
    "groups": (*KINDS["HSGD, a fraction of 0.5"], "data.validation=0.2", "evaluate.per_client=true"),
    "kept scores": ("data.validation=0.2", "evaluate.keep_scores=true"),
    "an interval that is measured": ("algorithm.local_steps=measure",),
    "an interval that is estimated": ("algorithm.local_steps=auto",),
    "suboptimality": ("evaluate.metrics=['suboptimality','auc']", "model.l2=0.1"),
    "several classes": ("data.name=wine", "algorithm.step_size=0.05"),
    "diverges": ("algorithm.step_size=1e3",),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MTCD", "MTCD, small networks", "DCPA", "transfer", "own parts", "sample weights"])
def test_other_kinds_as_trained(name: str, tmp_path: Path) -> None:
    config = config_of(tmp_path, name)
    assert launch(config, out=tmp_path / "launched").finished
    check_as_trained(config, tmp_path / "launched", tmp_path / "trained")


@pytest.mark.slow
@pytest.mark.parametrize("name", EVALUATED)
def test_evaluations_as_trained(name: str, tmp_path: Path) -> None:
    """Every figure of the run directory, its best and its last round."""
    path = tmp_path / "launched.toml"
    path.write_text(BASE.replace("batch_size = 32, ", "") if name == "groups" else BASE)
    config = read_config(path, [one for one in EVALUATED[name] if not one.endswith("=")])
    out, other = tmp_path / "launched", tmp_path / "trained"
    if name == "diverges":
        for run, where in ((launch, out), (train, other)):
            with pytest.raises(DivergenceError, match="training diverged, the training loss is"):
                run(config, out=where)
        one, two = (json.loads((path / "summary.json").read_text())["diverged"]["round"] for path in (out, other))
        assert one == two
        return
    assert launch(config, out=out).finished
    check_as_trained(config, out, other)


def test_an_own_algorithm_that_breaks_is_named_with_its_place(tmp_path: Path) -> None:
    config, out = config_of(tmp_path, "own parts", "run.rounds=5"), tmp_path / "out"
    mine, broken = tmp_path / "mine.py", "        if r == 2:\n            raise ValueError('boom')\n"
    good, start = mine.read_text(), "def run_round(self, fed, blocks, r):\n"
    mine.write_text(good.replace(start, start + broken))
    place = good[: good.index(start)].count("\n") + 3
    with pytest.raises(RunError) as raised:
        launch(config, out=out)
    said = re.fullmatch(
        rf"(?:.* has stopped the run: )?\S+ broke with ValueError: boom \(\S+/parts/mine.py, line {place}\); all of it "
        rf"is in {out / 'failed.txt'}", str(raised.value)
    )  # fmt: skip
    assert said, raised.value
    assert "Traceback (most recent call last)" in (out / "failed.txt").read_text()
    assert [path.name for path in out.iterdir()] == ["failed.txt"]
    mine.write_text(good)
    assert launch(config, out=out).finished
    assert not (out / "failed.txt").exists()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def kill(out: Path, house: str) -> None:
    os.kill(int((out / "parties" / house / "pid").read_text()), signal.SIGKILL)


def wait_until_gone(pids: list[int]) -> None:
    """Not for long: whose launcher is gone ends by itself."""
    pause = threading.Event()
    for _ in range(1000):
        if not any(map(is_alive, pids)):
            return
        pause.wait(0.01)
    raise AssertionError(f"still there: {[pid for pid in pids if is_alive(pid)]}")


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
    wait_until_gone(pids)
    with running(tmp_path, out, "run.rounds=60", resume=True) as process:
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    check_as_in_memory(config, out)


@pytest.mark.slow
def test_a_second_ctrl_c_ends_all_at_once_and_the_run_goes_on(tmp_path: Path) -> None:
    """The first waits for the round in hand, which a frozen hub never ends."""
    config, out = config_of(tmp_path, "TDCD", "run.rounds=100"), tmp_path / "out"
    with running(tmp_path, out, "run.rounds=100") as process:
        wait_for(out / "parties" / "hub-0-0" / "hub-0-0" / "state-10", process)
        pids = {path.parent.name: int(path.read_text()) for path in (out / "parties").glob("*/pid")}
        os.kill(pids["hub-0-0"], signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=3)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert re.fullmatch(rb"error: interrupted; go on .* with: crosshatch launch \S+ --out \S+ --resume\n", said), said
    wait_until_gone(list(pids.values()))
    with running(tmp_path, out, "run.rounds=100", resume=True) as process:
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
