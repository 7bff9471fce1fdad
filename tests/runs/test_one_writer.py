"""One writer per folder: a lock that ends with its process, and a refusal that says who has it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crosshatch.errors import RunError
from crosshatch.runs import one_writer as module
from crosshatch.runs.one_writer import LOCK, BusyError, is_empty, one_writer
from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.support.command_line import Command, environment

HOLD = """
import sys
from pathlib import Path
from crosshatch.errors import CrosshatchError
from crosshatch.runs.one_writer import is_empty, one_writer
folder = Path(sys.argv[1])
try:
    with one_writer(folder, "training"):
        print("has it" if is_empty(folder) else "full", flush=True)
        sys.stdin.readline()
        (folder / "file").touch()
except CrosshatchError as error:
    print(error, flush=True)
"""
Hold = Callable[[Path], subprocess.Popen[str]]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """`hold(folder)`: a process that takes a folder and ends when it is told a line."""
    begun: list[subprocess.Popen[str]] = []

    def start(folder: Path) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", HOLD, str(folder)]
        begun.append(
            subprocess.Popen(words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_second_is_told_who_has_it(tmp_path: Path, hold: Hold) -> None:
    folder = tmp_path / "runs" / "one"
    first = hold(folder)
    assert line(first) == "has it"
    with pytest.raises(BusyError) as caught, one_writer(folder, "sweeping"):
        pass
    said = re.fullmatch(
        rf"another process is writing {re.escape(str(folder))}: process (\d+) on (.+), training since "
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d: wait for it, or choose another --out",
        str(caught.value),
    )
    assert said is not None
    assert said.groups() == (str(first.pid), socket.gethostname())
    first.communicate("\n")
    assert [path.name for path in folder.iterdir()] == ["file"]
    with one_writer(folder, "sweeping"):
        assert not is_empty(folder)


def test_it_ends_with_its_process(tmp_path: Path, hold: Hold) -> None:
    first = hold(tmp_path)
    assert line(first) == "has it"
    first.kill()
    first.communicate()
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    with one_writer(tmp_path, "training"):
        assert is_empty(tmp_path)
        assert json.loads((tmp_path / LOCK).read_bytes())["process"] == os.getpid()
    assert not list(tmp_path.iterdir())


def test_many_at_one_moment(tmp_path: Path, hold: Hold) -> None:
    """Into a folder that is not there: one has it, whoever comes after that one has ended finds its file."""
    folder = tmp_path / "runs" / "one"
    processes = [hold(folder) for _ in range(8)]
    said = [line(process) for process in processes]
    assert said.count("has it") == 1
    (winner,) = (process for process, text in zip(processes, said, strict=True) if text == "has it")
    others = [text for text in said if text != "has it"]
    assert all(f"process {winner.pid} on {socket.gethostname()}, training since" in text for text in others), others
    winner.communicate("\n")
    assert line(hold(folder)) == "full"


def test_one_after_another_among_kills(tmp_path: Path, hold: Hold) -> None:
    """Whatever the killed ones left, there is never more than one."""
    folder = tmp_path / "one"
    for _ in range(3):
        rivals = [hold(folder) for _ in range(3)]
        said = [line(process) for process in rivals]
        assert said.count("has it") == 1, said
        winner = rivals[said.index("has it")]
        winner.send_signal(signal.SIGKILL)
        winner.communicate()
    assert [path.name for path in folder.iterdir()] == [LOCK]


def test_a_folder_that_was_made_for_nothing_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), one_writer(tmp_path / "runs" / "one", "training"):
        assert 1 / 0
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    with one_writer(tmp_path / "mine", "training"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_same_thread_may_ask_again(tmp_path: Path) -> None:
    with one_writer(tmp_path, "training"):
        with one_writer(tmp_path / "..", "elsewhere"), one_writer(tmp_path, "writing a report"):
            pass
        assert json.loads((tmp_path / LOCK).read_bytes())["doing"] == "training"
    assert not (tmp_path / LOCK).exists()


def test_what_is_not_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for name in ("file", "link"):
        with pytest.raises(RunError, match=rf"{name} is a file: choose another --out"), one_writer(tmp_path / name, ""):
            pass
    below = tmp_path / "file" / "one"
    with pytest.raises(RunError, match=r"cannot write .*one.*Not a directory"), one_writer(below, ""):
        pass


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="permissions do not count for this user")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RunError, match=r"cannot write .*Permission denied"), one_writer(tmp_path / "one", ""):
            pass
    finally:
        tmp_path.chmod(0o700)


def test_a_page_inside_a_folder_that_is_written(tmp_path: Path, hold: Hold, command: Command) -> None:  # noqa: F811
    """It is refused there, and may be written elsewhere."""
    row = '{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": 0.75}'
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "metrics.jsonl").write_text(row)
    assert line(hold(tmp_path / "one")) == "full"
    ended = command("report", tmp_path / "one")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ", training since " in ended.err
    assert not (tmp_path / "one" / "report.html").exists()
    assert command("report", tmp_path / "one", "--out", tmp_path / "page.html").code == 0


@pytest.mark.parametrize("way", ["refused", "absent"])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """The file is the lock there: the second is refused, and told what to do about one that was left."""

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if way == "refused":
        monkeypatch.setattr("crosshatch.runs.one_writer.fcntl.flock", flock)
    else:
        monkeypatch.setattr(module, "fcntl", None)
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_writer(tmp_path, "training"))
        monkeypatch.setattr(module, "_HELD", set())
        with pytest.raises(BusyError) as caught, one_writer(tmp_path, "training"):
            pass
        assert f"process {os.getpid()} on {socket.gethostname()}, training since" in str(caught.value)
        assert f"has no locks to tell whether it has ended: if so, remove {tmp_path / LOCK}" in str(caught.value)
    assert not list(tmp_path.iterdir())
