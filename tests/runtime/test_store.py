"""A state on disk is whole or the one before, its owner's alone, and written no more often than allowed."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from crosshatch.errors import RunError
from crosshatch.runtime.store import Pace, Store, write_whole


def test_the_owner_alone_can_read_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "hub-0-0")
    store.begin([b"one"], lambda _: None, 1)
    store.close()
    path = tmp_path / "hub-0-0" / "state"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_left_by_a_crash_does_not_keep_its_mode(tmp_path: Path) -> None:
    (tmp_path / "state.new").write_bytes(b"half")
    (tmp_path / "state.new").chmod(0o644)
    write_whole(tmp_path / "state", b"whole")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("call", ["fsync", "fchmod"])
def test_a_full_disk_is_named_and_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    store = Store(tmp_path)
    store.begin([b"round 1"], lambda _: None, 1)
    store.finish()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    told: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        store.begin([b"round 2"], told.append, 2)
        with pytest.raises(RunError, match=r"state \(7 bytes\): No space left on device: make room"):
            store.finish()
    assert (store.read(), told) == (b"round 1", [])
    store.close()


def test_no_more_often_than_allowed(tmp_path: Path) -> None:
    now = [0.0]
    store, may, told = Store(tmp_path, Pace(seconds=1.0), clock=lambda: now[0]), Event(), list[int]()
    assert store.due(1)
    store.begin([b"1"], lambda round: may.wait(10) and told.append(round), 1)  # type: ignore[func-returns-value]
    now[0] = 5.0
    assert not store.due(2)  # the one before is not done
    assert store.due(201)  # but nobody gets further ahead of its disk than this
    may.set()
    store.finish()
    assert told == [1]
    assert store.due(2)
    store.begin([b"2"], told.append, 2)
    store.finish()
    now[0] = 5.9
    assert not store.due(3)
    now[0] = 6.0
    assert store.due(3)
    store.close()


def test_who_is_dialled_stores_first(tmp_path: Path) -> None:
    now = [0.0]
    store = Store(tmp_path, Pace(seconds=1.0), clock=lambda: now[0])
    store.begin([b"1"], lambda _: None, 7)
    store.finish()
    now[0] = 1.5
    assert [store.due(9, told) for told in (5, 7, 8)] == [False, False, True]
    assert store.due(207, 7)  # nobody gets further ahead of its disk than this
    now[0] = 2.0
    assert store.due(9, 7)  # it is not waited for without end
    store.close()


def test_every_so_many_rounds(tmp_path: Path) -> None:
    store, found = Store(tmp_path, Pace(rounds=10)), list[int]()
    for round in range(1, 35):
        if store.due(round):
            store.begin([b""], found.append, round)
    store.close()
    assert found == [10, 20, 30]
    assert store.pace.most == 10


def test_copies_of_rounds_and_whether_it_has_begun(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert (store.begun, store.copies()) == (False, [])
    for round in (5, 10, 15):
        store.begin([str(round).encode()], lambda _: None, round, keep=round != 15)
    store.finish()
    assert (store.begun, store.copies(), store.read(), store.read(10)) == (True, [5, 10], b"15", b"10")
    store.forget_after(5)
    assert (store.copies(), store.read(10), store.read()) == ([5], None, b"15")
    (tmp_path / "state").unlink()
    assert Store(tmp_path).begun
    store.close()


KILLED = """
import sys
from pathlib import Path
from crosshatch.runtime.store import write_whole
path, n = Path(sys.argv[1]), 0
while True:
    n += 1
    write_whole(path, bytes([n % 256]) * 300_000)
    print(n, flush=True)
"""


def test_killed_amid_writing_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for lines in range(1, 8):
        with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(lines):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        data = path.read_bytes()
        assert len(data) == 300_000
        assert len(set(data)) == 1
