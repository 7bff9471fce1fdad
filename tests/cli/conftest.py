"""The real command line, in this process or in one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosshatch.cli import main
from tests.support.command_line import Command, Ended


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
