"""`crosshatch study` in processes: killed and started again, and on two jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.small_studies import write_config, write_rows

COMMAND = ("study", "made.toml", "--seeds", "2", "--steps", "0.3,1", "--jobs", "2")


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    program = "from crosshatch.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", program, *COMMAND, *more], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def finished_runs(out: Path) -> dict[str, int]:
    """When each run that has finished did so."""
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("runs/*/summary.json")}


@pytest.mark.slow
def test_killed_and_started_again_it_ends_with_the_same_table(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", n=400, seed=1, alone=0.7, joint=0.8)
    write_config(tmp_path, rounds=60, algorithm="fedbcd")
    whole = start(tmp_path, "--out", "whole")
    assert whole.communicate(timeout=500)[0]
    assert whole.returncode == 0
    killed = start(tmp_path, "--out", "killed")
    try:
        until = time.monotonic() + 300
        while len(finished_runs(tmp_path / "killed")) < 3 and killed.poll() is None:
            assert time.monotonic() < until
            os.sched_yield()
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate(timeout=60)
        before = finished_runs(tmp_path / "killed")
        assert 3 <= len(before) < len(finished_runs(tmp_path / "whole"))
        again = start(tmp_path, "--out", "killed")
        printed = again.communicate(timeout=500)[0]
        assert again.returncode == 0, printed
    finally:
        killed.kill()
    after = finished_runs(tmp_path / "killed")
    assert {name: after[name] for name in before} == before, "a run that had finished was repeated"
    for name in ("table.csv", "scores.csv", "result.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
