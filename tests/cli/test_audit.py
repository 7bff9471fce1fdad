"""`crosshatch audit`: its tables, its JSON, and its refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Command

CONFIG = """
data = {name = "breast_cancer"}
federation = {silos = 2, labels = "silo2"}
algorithm = {name = "fedbcd", local_steps = 2}
run = {rounds = 5, threads = 1, record_messages = true, precision = "float64"}
"""


@pytest.fixture
def recorded(command: Command) -> Path:
    """A run whose messages were recorded."""
    Path("held.toml").write_text(CONFIG)
    assert command("train", "held.toml", "--quiet").code == 0
    return Path("runs/held")


def test_theorem1_prints_tables(command: Command, recorded: Path) -> None:
    ended = command("audit", "theorem1", recorded)
    assert ended.code == 0, ended.err
    assert "labels held by silo2" in ended.out
    assert "infinitely" in ended.out
    assert "not unique" in ended.out
    assert "labels by derivatives, labels, by silo1: accuracy by sign 1" in ended.out
    assert (recorded / "audit_theorem1.json").is_file()


def test_both_print_json(command: Command, recorded: Path) -> None:
    one = json.loads(command("audit", "theorem1", recorded, "--silo", "silo1", "--private-start", "--json").out)
    assert (one["start"], [silo["silo"] for silo in one["silos"]]) == ("private", ["silo1"])
    other = json.loads(command("audit", "attacks", recorded, "--json").out)
    assert other == json.loads((recorded / "audit_attacks.json").read_text())


def test_attacks_print_a_table(command: Command, recorded: Path) -> None:
    ended = command("audit", "attacks", recorded)
    assert ended.code == 0, ended.err
    assert "2,275 derivatives; by the sign of each derivative; lower by privacy.encryption" in ended.out


def test_which_audit_must_be_said(command: Command) -> None:
    ended = command("audit")
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert "Missing command" in ended.err


@pytest.mark.parametrize("name", ["theorem1", "attacks"])
def test_help_has_an_example(command: Command, name: str) -> None:
    assert f"crosshatch audit {name} runs/recorded" in command("audit", name, "--help").out


@pytest.mark.parametrize("name", ["theorem1", "attacks"])
def test_not_a_run_directory(command: Command, name: str) -> None:
    ended = command("audit", name, "nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: nowhere is not a run directory: name one, as written by `crosshatch train --out`\n"


def test_messages_not_recorded(command: Command) -> None:
    Path("held.toml").write_text(CONFIG)
    assert command("train", "held.toml", "--quiet", "--set", "run.record_messages=false").code == 0
    ended = command("audit", "theorem1", "runs/held")
    assert ended.code == 2
    assert ended.err == (
        "error: the messages of runs/held were not recorded: train it with run.record_messages = true\n"
    )


def test_an_audited_run_goes_on(command: Command, recorded: Path) -> None:
    assert command("audit", "theorem1", recorded).code == 0
    more = command("train", "held.toml", "--out", recorded, "--resume", "--set", "run.rounds=8", "--quiet")
    assert more.code == 0, more.err
    again = json.loads(command("audit", "theorem1", recorded, "--json").out)
    assert again["rounds"] == 8
