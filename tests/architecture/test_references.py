"""The pages about configs and commands say what the code says: every key with type and default, every help text."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from typing import Any

import pytest
import typer.main

from crosshatch.cli.app import app
from crosshatch.report.measures import parse_target
from tests.architecture.config_keys import SECTIONS, rows
from tests.architecture.modules import ROOT
from tests.architecture.pages import blocks

CONFIG = ROOT / "docs" / "reference" / "config.md"
COMMANDS = ROOT / "docs" / "reference" / "commands.md"
ROW = re.compile(r"^\| `(?P<key>\w+)` \| (?P<type>[^|]*) \| (?P<default>[^|]*) \| (?P<meaning>[^|]+) \|$", re.MULTILINE)
PROGRAM = "from crosshatch.cli import main; main()"


def chapters(text: str) -> dict[str, str]:
    """The text below each second-level heading."""
    pieces = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_config_page_has_the_sections_there_are() -> None:
    assert list(chapters(CONFIG.read_text(encoding="utf-8"))) == list(SECTIONS)


@pytest.mark.parametrize(("heading", "kind"), SECTIONS.items(), ids=list(SECTIONS))
def test_config_page_tells_of_every_key(heading: str, kind: type[Any]) -> None:
    text = chapters(CONFIG.read_text(encoding="utf-8")).get(heading, "")
    if not dataclasses.is_dataclass(kind):
        assert [key for key, _, _ in rows(kind) if f"`{key}`" not in text] == []
        return
    wanted = [f"| `{key}` | {kind} | {default} | meaning |" for key, kind, default in rows(kind)]
    found = [f"| `{row['key']}` | {row['type']} | {row['default']} | meaning |" for row in ROW.finditer(text)]
    assert found == wanted, f"docs/reference/config.md, ## {heading}: write these rows with their meaning"


def help_texts() -> dict[str, str]:
    """What `--help` says, for the program and each of its commands."""
    commands = getattr(typer.main.get_command(app), "commands", {})
    inner = [f"{name} {one}" for name, command in commands.items() for one in getattr(command, "commands", {})]
    names = ["", *commands, *inner]
    return {name: f"crosshatch {name}".strip() + " --help" for name in names}


@pytest.mark.parametrize(("name", "command"), help_texts().items(), ids=list(help_texts().values()))
def test_commands_page_has_the_help(name: str, command: str) -> None:
    program = [sys.executable, "-c", PROGRAM, *name.split(), "--help"]
    narrow = {**os.environ, "COLUMNS": "80"}
    ran = subprocess.run(program, capture_output=True, text=True, check=True, env=narrow)
    shown = [block.text for block in blocks(COMMANDS.read_text(encoding="utf-8")) if block.language == "text"]
    assert ran.stdout in shown, f"docs/reference/commands.md: put what `{command}` prints into a text block"


def test_config_page_has_every_way_to_write_a_target() -> None:
    text = chapters(CONFIG.read_text(encoding="utf-8"))["[evaluate]"]
    (row,) = [found for found in ROW.finditer(text) if found["key"] == "targets"]
    examples = re.findall(r'`"(\w+(\W?=)[0-9.]+)"`', row["meaning"])
    assert [parse_target(target).label for target, _ in examples] == ["auc>=0.75", "auc>=0.75", "loss<=0.4"]
    assert {sign for _, sign in examples} == {"=", ">=", "<="}
