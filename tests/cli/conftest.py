"""The real command line, in this process or in one of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from crosshatch.cli import main

SOURCE = Path(__file__).resolve().parents[2] / "src"


@dataclass(frozen=True)
class Ended:
    """What a command left: exit code and both outputs."""

    code: int
    out: str
    err: str


Command = Callable[..., Ended]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`command("train", path)` runs in this process, in an empty folder without a data folder."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    monkeypatch.delenv("CROSSHATCH_DATA", raising=False)

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(int(caught.value.code or 0), printed.out, printed.err)

    return run


def environment() -> dict[str, str]:
    """For a process of its own: this source, one thread, no data folder."""
    kept = {key: value for key, value in os.environ.items() if key != "CROSSHATCH_DATA"}
    return kept | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
