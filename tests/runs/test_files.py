"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from crosshatch.errors import RunError
from crosshatch.runs.files import write_whole, writing


def test_an_old_file_stays_when_the_new_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("crosshatch.runs.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device that is always full is Linux's")
def test_a_disk_that_is_really_full() -> None:
    with pytest.raises(RunError, match=r"no space left to write out \(No space left on device\)"), writing(Path("out")):
        Path("/dev/full").write_bytes(b"x" * 100_000)


def test_other_refusals_name_the_place(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write .*absent.*No such file"), writing(tmp_path):
        (tmp_path / "absent" / "file").write_bytes(b"")
