"""A recipe that is killed half-way and started again ends with the results of one that nobody disturbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path
from tests.reproduce.small_recipe import RECIPE
from tests.support.reproducing import run
if __name__ == "__main__":
    print(run(Path(sys.argv[1]), RECIPE).trained)
"""


def start(out: Path) -> subprocess.Popen[str]:
    program = out.parent / "program.py"
    program.write_text(PROGRAM)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, str(program), str(out)]
    return subprocess.Popen(words, env=os.environ | {"PYTHONPATH": paths}, stdout=subprocess.PIPE, text=True)


def told(out: Path) -> dict[str, object]:
    found = json.loads((out / "small" / "result.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    del found["made"]
    return found


@pytest.mark.slow
def test_killed_and_started_again(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole" / "out", tmp_path / "cut" / "out"
    for out in (whole, cut):
        out.parent.mkdir()
    first = int(start(whole).communicate(timeout=300)[0])
    process = start(cut)
    until = time.monotonic() + 120
    while len(list(cut.glob("runs/*/summary.json"))) < 5 and time.monotonic() < until and process.poll() is None:
        os.sched_yield()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    done = len(list(cut.glob("runs/*/summary.json")))
    assert 5 <= done < first
    rest = int(start(cut).communicate(timeout=300)[0])
    assert first - done - 1 <= rest <= first - done
    assert told(cut) == told(whole)
    assert (cut / "small" / "figure.svg").read_bytes() == (whole / "small" / "figure.svg").read_bytes()
    assert int(start(cut).communicate(timeout=300)[0]) == 0
