"""Bad input of groups, tiers, heads and codecs through the real command line: one line, exit code 2, nothing left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.support.bad_input import PEOPLE, left_behind, require_refusal, write_table
from tests.support.command_line import Command

CONFIG = (
    PEOPLE
    + """
[federation]
groups = 2
clients = 4
labels = "hospital"
silos = [{ name = "hospital", columns = ["x1", "x2"], clients = 1 }, { name = "devices", columns = ["x3"] }]
[model]
fusion = "head"
outputs = 2
[algorithm]
name = "hsgd"
global_steps = 4
local_steps = 2
fraction = 0.5
[run]
name = "one"
rounds = 2
threads = 1
"""
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config beside its table."""
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "good.toml").write_text(CONFIG)
    write_table(folder / "people.csv")
    return folder / "good.toml"


def test_the_input_is_good_before_it_is_made_bad(config: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", config, "--set", "codecs.share=topk(0.5)")
    assert ended.code == 0, ended.err


TIERED = ("algorithm.name=tiered", "algorithm.global_steps=", "algorithm.local_steps=")
FLAT = (
    "algorithm.name=tdcd", "federation.groups=1", "algorithm.global_steps=", "algorithm.fraction=",
)  # fmt: skip
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "P no multiple of Q": (
        ("algorithm.global_steps=5",),
        ("algorithm.global_steps = 5", "multiple of Q (algorithm.local_steps = 2)", "for example 4"),
    ),
    "P below Q": (("algorithm.global_steps=1",), ("algorithm.global_steps = 1", "for example 2")),
    "P = 0": (("algorithm.global_steps=0",), ("algorithm.global_steps = 0", "for example 2")),
    "an interval no multiple of the next": (
        (*TIERED, "algorithm.tiers=H(5) V(2) H(2)"),
        ("algorithm.tiers", "interval 5 is not a multiple of 2", "write 'H(4) V(2) H(2)'"),
    ),
    "several intervals that do not nest": (
        (*TIERED, "algorithm.tiers=V(20) H(7) H(5)"), ("20 is not a multiple of 7", "write 'V(20) H(5) H(5)'")),
    "a tier without branches": (
        (*TIERED, "algorithm.tiers=H(4) V(4) H(2) H(1)"), ("takes 1 tier of branches", "give 1 number above 1")),
    "fraction 0": (("algorithm.fraction=0",), ("algorithm.fraction = 0", "above 0 and at most 1")),
    "fraction above 1": (("algorithm.fraction=1.5",), ("algorithm.fraction = 1.5", "at most 1")),
    "fraction no number": (("algorithm.fraction=nan",), ("algorithm.fraction = nan", "at most 1")),
    "fraction below 0, of pairs": (
        ("algorithm.name=jfl", "algorithm.global_steps=", "algorithm.fraction=-1"),
        ("algorithm.fraction = -1", "above 0"),
    ),
    "derivatives that go on behind a head": (
        (*FLAT, "algorithm.derivatives=continued"),
        ("silo 'hospital' holds the labels", "behind a trained head", "set model.fusion = 'sum'"),
    ),
    "turns with a head per client": (
        (*FLAT, "algorithm.order=sequential"),
        ("TDCD averages clients once per round", "algorithm.order = 'parallel'"),
    ),
    "top-k of nothing": (("codecs.share=topk",), ("codecs.share", "has neither", "topk(0.01), or topk(k=100)")),
    "k = 0": (("codecs.share=topk(k=0)",), ("codecs.share", "k >= 1", "at least one")),
    "a share of 0": (("codecs.share=topk(0)",), ("codecs.share", "above 0 and at most 1")),
    "one level": (("codecs.share=quantise(1)",), ("codecs.share", "from 2 to")),
    "unknown codec": (("codecs.share=topp(0.1)",), ("codecs.share", "unknown codec 'topp'", "did you mean 'topk'?")),
    "no codec at all": (("codecs.share=3",), ("codecs.share", "a string such as")),
    "unknown exchange": (("codecs.shar=half",), ("codecs.shar is unknown", "did you mean 'share'?")),
    "an exchange this run has not": (
        ("federation.labels=shared", "codecs.derivatives=half"),
        ("codecs.derivatives", "it has share, head, broadcast"),
    ),
    "head without a holder": (
        ("model.head_holder=nobody",), ("model.head_holder is 'nobody'", "the silos are hospital, devices")),
    "holder without a head": (
        ("model.fusion=sum", "model.head_holder=hospital"), ("model.head_holder", "set model.fusion = 'head'")),
    "no groups": (("federation.groups=0",), ("federation.groups = 0", "at least 1")),
    "an empty list of groups": (("federation.groups=[]",), ("federation.groups = []", "leave groups out")),
    "branches of nothing": (("federation.branches=[0]",), ("federation.branches = [0]", "at least 1")),
    "more groups than samples": (("federation.groups=99",), ("federation.groups", "99", "at most 32")),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_bad_settings(config: Path, command: Command, name: str) -> None:  # noqa: F811
    changes, words = CASES[name]
    ended = command("train", config, *[part for change in changes for part in ("--set", change)])
    require_refusal(ended.code, ended.out, ended.err, words)
    assert left_behind(Path.cwd()) == []


def test_groups_of_unequal_columns(config: Path, command: Command) -> None:  # noqa: F811
    """All groups divide the same rows; files that do not agree in their columns are refused where they are named."""

    def without_x3(rows: list[list[str]]) -> None:
        for row in rows:
            del row[3]

    write_table(config.parent / "test.csv", without_x3)
    ended = command("train", config, "--set", "data.test_path=test.csv")
    require_refusal(ended.code, ended.out, ended.err, ("test.csv has no column 'x3'", "give both the same columns"))
    unequal = "federation.silos=[{name='hospital', columns=['x1']}, {name='devices', columns=['x3', 'x4']}]"
    ended = command("train", config, "--set", unequal)
    require_refusal(ended.code, ended.out, ended.err, ("silo 'devices'", "unknown column 'x4'", "x1, x2, x3"))
    assert left_behind(Path.cwd()) == []
