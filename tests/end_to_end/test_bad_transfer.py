"""Bad input of transfer between two silos through the real command line: one line, exit code 2, nothing left."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.support.bad_input import FILES, PEOPLE, left_behind, require_refusal, write_table
from tests.support.command_line import Command, Ended

TRANSFER = """
[federation]
common = 12
silos = [{ name = "a", columns = ["x1"] }, { name = "b", columns = ["x2", "x3"] }]
[model]
fusion = "transfer"
block = "mlp"
hidden = [4]
outputs = 3
[algorithm]
name = "fedbcd"
local_steps = 2
[run]
name = "one"
rounds = 2
threads = 1
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config beside its table."""
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "good.toml").write_text(PEOPLE + TRANSFER)
    write_table(folder / "people.csv")
    return folder / "good.toml"


def refused(ended: Ended, *words: str) -> None:
    require_refusal(ended.code, ended.out, ended.err, words)


def test_the_input_is_good_before_it_is_made_bad(config: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", config)
    assert ended.code == 0, ended.err


CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "three silos": (
        ('federation.silos=[{name="a",columns=["x1"]},{name="b",columns=["x2"]},{name="c",columns=["x3"]}]',),
        ("between two silos", "has 3", "name two silos"),
    ),
    "no common samples": (("federation.common=0",), ("federation.common = 0", "give at least 1")),
    "more than there are": (("federation.common=33",), ("federation.common = 33", "there are 32", "'all'")),
    "not two classes": (("data.target=regression",), ("two classes", "data.positive")),
    "widths that differ": (
        ("model.blocks.b.outputs=2",),
        ("'a' has embeddings of width 3, silo 'b' of width 2", "model.outputs"),
    ),
    "several clients": (("federation.clients=2",), ("one client per silo", "'a' has 2", "federation.clients = 1")),
    "other tiers": (("algorithm.name=tdcd",), ("transfer between two silos on V alone", "use fedsgd, fedbcd or abcd")),
    "common without transfer": (("model.fusion=head",), ("federation.common = 12 without model.fusion",)),
    "transfer without common": (("federation.common=",), ("model.fusion = 'transfer' without federation.common",)),
    "alignment": (("model.alignment=angle",), ("model.alignment", "angle")),
    "step by theory": (("algorithm.step_size=auto",), ("model.fusion = 'transfer'", "'measure'")),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_settings(name: str, config: Path, command: Command) -> None:  # noqa: F811
    changes, parts = CASES[name]
    home = Path.cwd()
    refused(command("train", config, *(word for change in changes for word in ("--set", change))), *parts)
    assert left_behind(home) == []


def test_a_plan(config: Path, command: Command) -> None:  # noqa: F811
    refused(command("plan", config), "model.fusion = 'transfer'", "a class mean ties all samples together")


def test_files_without_a_common_id(config: Path, command: Command) -> None:  # noqa: F811
    table = pl.read_csv(config.parent / "people.csv")
    table.select("id", "x1", "y")[:20].write_csv(config.parent / "a.csv")
    table.select("id", "x2", "x3")[20:].write_csv(config.parent / "b.csv")
    text = FILES.replace("[federation]\n", '[federation]\ncommon = "all"\n') + '[model]\nfusion = "transfer"\n'
    config.write_text(text)
    refused(command("train", config), "the ids do not overlap", "check the id columns")
