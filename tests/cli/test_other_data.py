"""Data that have changed since a run was started, as the commands answer them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import Command

CONFIG = """
data = {path = "rows.csv", id = "id", label = "y"}
federation = {silos = 2}
algorithm = {name = "fedbcd", local_steps = 2}
run = {rounds = 4, threads = 1, record_messages = true, precision = "float64"}
"""
HEADER = "id,a,b,c,d,y"
ROWS = [f"{i},{i * 37 % 101},{i * 53 % 97},{i * 29 % 89},{i * 31 % 83},{i * i % 7 % 2}" for i in range(60)]


def write(lines: list[str], header: str = HEADER) -> None:
    Path("rows.csv").write_text("\n".join([header, *lines]) + "\n")


@pytest.fixture
def trained(command: Command) -> Path:
    Path("own.toml").write_text(CONFIG)
    write(ROWS)
    assert command("train", "own.toml", "--quiet").code == 0
    return Path("runs/own")


def flipped() -> list[str]:
    return [f"{line[:-1]}{1 - int(line[-1])}" for line in ROWS]


RESUME = ("train", "own.toml", "--resume", "--set", "run.rounds=8")


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize(
    "asked", [RESUME, (*RESUME, "--quiet"), ("predict", "runs/own"), ("audit", "attacks", "runs/own")]
)
def test_flipped_labels(command: Command, asked: tuple[str, ...]) -> None:
    assert command(*asked).code == 0
    write(flipped())
    ended = command(*asked)
    assert ended.code == 2
    assert ended.out.strip() == ""
    assert len(ended.err.splitlines()) == 1
    assert "have changed since the run in runs/own was started: labels differ" in ended.err
    assert "put back the data it was started with" in ended.err


@pytest.mark.usefixtures("trained")
def test_a_removed_column(command: Command) -> None:
    """Once a traceback."""
    write([line.rpartition(",")[0].rpartition(",")[0] + line[-2:] for line in ROWS], "id,a,b,c,y")
    for asked in (RESUME, ("audit", "theorem1", "runs/own")):
        ended = command(*asked)
        assert (ended.code, len(ended.err.splitlines())) == (2, 1)
        assert "a column is gone" in ended.err


@pytest.mark.usefixtures("trained")
@pytest.mark.parametrize("asked", [(*RESUME, "--quiet"), ("predict", "runs/own"), ("audit", "attacks", "runs/own")])
def test_another_key(command: Command, asked: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSHATCH_KEY_FILE", str(tmp_path / "another.key"))
    ended = command(*asked)
    assert ended.code == 0
    assert ended.err.count("cannot tell whether these are the") == 1


def test_compare_marks_them(command: Command, trained: Path) -> None:
    write(flipped())
    assert command("train", "own.toml", "--quiet", "--out", "runs/flipped").code == 0
    ended = command("compare", trained, "runs/flipped")
    assert ended.code == 0
    assert "(test rows B)" in " ".join(ended.out.split())
    assert "not ranked against each other: own (A); flipped (B)." in " ".join(ended.out.split())
