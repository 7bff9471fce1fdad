"""Help: quick to come, with an example for every command."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from tests.support.command_line import Command, environment

COMMANDS = ("train", "plan", "sweep", "predict", "export", "audit", "compare", "report", "datasets", "demo")
# Each takes longer to import than help may take in all.
HEAVY = {"torch", "polars", "sklearn", "rich", "numpy", "msgspec", "networkx"}


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys, crosshatch.cli\n"
        "try: crosshatch.cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print('loaded', *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment())
    usage, _, loaded = ran.stdout.rpartition("loaded")
    assert "Usage: crosshatch" in usage
    assert not HEAVY.intersection(loaded.split())


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_all_commands_are_listed(command: Command, option: str) -> None:
    ended = command(option)
    assert ended.code == 0
    assert all(name in ended.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_an_example(command: Command, name: str, option: str) -> None:
    ended = command(name, option)
    assert ended.code == 0
    assert f"Example:\n    crosshatch {name}" in ended.out


def test_no_command_is_help(command: Command) -> None:
    assert "Usage: crosshatch" in "".join(str(part) for part in (command().out, command().err))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trai"], "No such command 'trai'"),
        (["train"], "Missing argument"),
        (["train", "x.toml", "--st", "a"], "No such option"),
        (["compare"], "Missing argument"),
    ],
)
def test_wrong_usage_is_one_line(command: Command, arguments: list[str], words: str) -> None:
    ended = command(*arguments)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_version(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.2.3")
    assert command("--version").out == "crosshatch 1.2.3\n"

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    ended = command("--version")
    assert (ended.code, ended.err) == (0, "")
    assert "version unknown" in ended.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_speaks_no_python(command: Command, name: str) -> None:
    shown = command(name, "--help").out
    assert not set("{}<>").intersection(shown.replace("METRIC>=VALUE", "").replace("METRIC<=VALUE", ""))
    assert "default" not in shown
