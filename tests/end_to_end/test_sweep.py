"""`crosshatch sweep` in processes: killed, stopped, broken down, and whatever else may be asked of it wrongly."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from crosshatch.runs.one_writer import LOCK
from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.support.command_line import Command, environment
from tests.support.whole_sweeps import CONFIG, wait_until

SWEEP = ("sweep", "small.toml")
# four step sizes, of which the last diverges, three Qs and five seeds: 60 runs
SIXTY = (
    "--grid", "algorithm.step_size=0.01,0.1,0.3,1e9", "--grid", "algorithm.local_steps=1,2,5", "--seeds", "5",
    "--choose", "best validation accuracy", "--jobs", "2",
)  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(CONFIG)
    return tmp_path


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """`start("sweep", ...)`: the command as a process that leads a group of its own, as one started from a terminal.

    Whatever becomes of the test, nothing of the group is left at its end.
    """
    begun: list[subprocess.Popen[str]] = []

    def run(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "crosshatch", *words],
            cwd=home, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        begun.append(process)
        return process

    yield run
    for process in begun:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def read_until(process: subprocess.Popen[str], ended: int) -> None:
    """Until so many runs have ended."""
    assert process.stdout is not None
    next(line for line in process.stdout if re.match(rf"\s*{ended}/", line))


def files_of_finished(out: Path) -> dict[Path, tuple[int, bytes]]:
    """Time of change and content of every file of every run that has finished."""
    runs = [summary.parent for summary in out.glob("runs/*/summary.json")]
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for run in runs
        for path in sorted(run.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_killed_and_started_again(home: Path, start: Start) -> None:
    process = start(*SWEEP, *SIXTY, "--out", "out")
    read_until(process, 25)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    finished = files_of_finished(home / "out")
    count = len({path.parts[-2] for path in finished if path.name == "summary.json"})
    assert 25 <= count < 60
    again = start(*SWEEP, *SIXTY, "--out", "out")
    out, err = again.communicate()
    assert (again.returncode, err) == (0, "")
    assert f"60 runs, {count} of which have finished" in out
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in finished} == finished
    # fifteen of them diverged and stopped nothing
    lines = (home / "out" / "table.csv").read_text().splitlines()
    assert len(lines) == 13
    assert sum("diverged 5 of 5" in line for line in lines) == 3
    assert len(list((home / "out" / "runs").iterdir())) == 60
    assert (home / "out" / "report.html").is_file()
    # and all of it as if nobody had killed it
    whole = start(*SWEEP, *SIXTY, "--out", "whole", "--quiet")
    _, err = whole.communicate()
    assert whole.returncode == 0
    assert err.count("diverged at round 5") == 15
    assert (home / "whole" / "table.csv").read_bytes() == (home / "out" / "table.csv").read_bytes()
    assert (home / "whole" / "chosen.toml").read_bytes() == (home / "out" / "chosen.toml").read_bytes()
    trained = start("train", "out/chosen.toml", "--out", "one")
    _, err = trained.communicate()
    assert (trained.returncode, err) == (0, "")


LONG = ("--grid", "algorithm.step_size=0.1,0.2", "--jobs", "2", "--set", "run.rounds=1000000", "--out", "out")


def wait_for_checkpoints(home: Path) -> None:
    """Until both runs are under way."""
    wait_until(lambda: len(list(home.glob("out/runs/*/checkpoint/state.safetensors"))) == 2)


@pytest.mark.parametrize("whom", ["all", "the parent"])
def test_asked_to_stop(home: Path, start: Start, whom: str) -> None:
    """By Ctrl-C, which the terminal sends to all processes, or by a signal to the command alone."""
    process = start(*SWEEP, *LONG)
    wait_for_checkpoints(home)
    if whom == "all":
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.count("\n") == 1, err
    assert err.startswith("stopped; runs under way keep their checkpoints; go on with: crosshatch sweep small.toml ")
    for run in ("step_size=0.1,seed=0", "step_size=0.2,seed=0"):  # asked, not killed: a model is there
        assert (home / "out" / "runs" / run / "model" / "model.json").is_file()
    # what it says goes on, and is the same sweep
    said = shlex.split(err.split("go on with: ")[1])
    again = start(*said[1:])
    assert again.stdout is not None
    assert next(again.stdout) == "2 runs\n"


def worker_pids(home: Path, run: str) -> set[int]:
    """Processes that hold a run directory of the sweep, as the lock on it does."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone, or somebody else's
            for handle in (process / "fd").iterdir():
                with contextlib.suppress(OSError):  # closed meanwhile
                    if Path(os.readlink(handle)).match(f"{home}/out/runs/{run}/{LOCK}"):
                        found.add(int(process.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds processes by /proc")
def test_a_process_that_breaks_down_takes_one_run_with_it(home: Path, start: Start) -> None:
    options = ("--grid", "run.rounds=1000000,10", "--seeds", "2", "--jobs", "1", "--choose", "last train_loss")
    process = start(*SWEEP, *options, "--out", "out")
    for seed in range(2):
        long = f"rounds=1000000,seed={seed}"
        wait_until(partial(worker_pids, home, long))
        (pid,) = worker_pids(home, long)
        os.kill(pid, signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 1
    assert err.startswith(
        "error: 1 of 2 points failed: rounds=1000000 (failed 2 of 2: its process was ended by signal 9"
    )
    assert err.count("\n") == 1
    assert out.count("failed: its process was ended by signal 9") == 2
    assert "failed 2 of 2" in out
    assert "chosen: rounds=10 " in out


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="finds processes by /proc")
def test_no_process_outlives_the_command(home: Path, start: Start) -> None:
    process = start(*SWEEP, *LONG)
    wait_for_checkpoints(home)
    assert len(worker_pids(home, "*")) == 2
    for pid in worker_pids(home, "*"):  # libraries that are loaded there take one thread each
        assert b"POLARS_MAX_THREADS=1" in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: not worker_pids(home, "*"))


def test_two_at_once(home: Path, start: Start) -> None:
    process = start(*SWEEP, *LONG)
    wait_for_checkpoints(home)
    other = start(*SWEEP, *LONG)
    _, err = other.communicate()
    assert other.returncode == 2
    assert err.startswith(f"error: another process is writing out: process {process.pid} on "), err
    assert ", sweeping since " in err
    assert process.poll() is None


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small.toml"
    path.write_text(CONFIG)
    yield path
    assert not list((tmp_path / "home").iterdir()), "something was left behind"


GRID = ("--grid", "algorithm.step_size=0.1,0.2")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "one run only"),
        (("--grid", "step_size=1,2"), "write section.key=value,value"),
        (("--grid", "algorithm.stepsize=1,2"), "did you mean 'step_size'?"),
        ((*GRID, "--seeds", "no"), "--seeds no"),
        ((*GRID, "--choose", "best accuracy"), "would go by the test rows"),
        ((*GRID, "--set", "data.validation="), "set data.validation"),
        ((*GRID, "--set", "rounds=3"), "write section.key=value"),
        ((*GRID, "--jobs", "0"), "--jobs 0: at least 1"),
        ((*GRID, "--jobs", "two"), "Invalid value for '--jobs'"),
        ((*GRID, "--data", "gone"), "no data folder gone"),
        ((*GRID, "--draws", "5"), "--draws 5 without --random"),
        (("--grid", "run.rounds=1,2", "--halving"), "leave run.rounds out of the grid"),
    ],
)
def test_refused(command: Command, small: Path, options: tuple[str, ...], words: str) -> None:  # noqa: F811
    ended = command("sweep", small, *options)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert words in ended.err


def test_no_config(command: Command, tmp_path: Path) -> None:  # noqa: F811
    ended = command("sweep", tmp_path / "gone.toml", *GRID)
    assert (ended.code, "no config file" in ended.err) == (2, True)


@pytest.mark.parametrize("options", [("--ray", "auto"), ("--workers", 2), ("--workers", 2, "--ray", "10.0.0.5:6379")])
def test_no_ray(
    command: Command,  # noqa: F811
    small: Path,
    options: tuple[object, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Noticed before the first run, by a sweep and by a study."""
    monkeypatch.setitem(sys.modules, "ray", None)
    for words in (("sweep", small, *GRID), ("study", small, "--seeds", 1)):
        ended = command(*words, *options, "--out", "out")
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
        assert "pip install -e '.[ray]'" in ended.err
        assert not Path("out").exists()


def test_out_is_a_file(command: Command, small: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "file").touch()
    ended = command("sweep", small, *GRID, "--out", tmp_path / "file")
    assert (ended.code, "is a file: choose another --out" in ended.err) == (2, True)


def test_the_time_is_up_before_a_run_has_finished(command: Command, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "small.toml"
    path.write_text(CONFIG)
    rounds = ("--set", "run.rounds=1000000")
    ended = command("sweep", path, *GRID, "--out", "a", "--jobs", 1, "--time-limit", "0.001s", *rounds)
    assert ended.code == 0, ended.err
    assert ended.err.startswith("the time is up: 2 runs have not finished; go on with: crosshatch sweep ")
    assert ended.err.count("\n") == 1
    assert "remarks" not in ended.out


def test_nothing_to_choose(command: Command, tmp_path: Path) -> None:  # noqa: F811
    """All diverge: exit code 1, as of a run that does. None reaches the target, or all are refused by the data: 2."""
    path = tmp_path / "small.toml"
    path.write_text(CONFIG)
    ended = command("sweep", path, "--grid", "algorithm.step_size=1e9,2e9", "--out", "a", "--jobs", 1)
    assert ended.code == 1
    assert "no run of the sweep in a ended well; the first, step_size=1e9,seed=0, diverged" in ended.err
    assert (Path("a") / "table.csv").read_text().count("diverged 1 of 1") == 2
    assert not (Path("a") / "chosen.toml").exists()
    choose = ("--choose", "fewest rounds to validation loss=0.0001")
    ended = command("sweep", path, *GRID, "--out", "b", "--jobs", 1, *choose)
    assert (ended.code, "no run reached the target" in ended.err) == (2, True)
    ended = command("sweep", path, "--grid", "algorithm.batch_size=500,600", "--out", "c", "--jobs", 1)
    assert ended.code == 2
    assert "batch_size=500,seed=0, refused" in ended.err
