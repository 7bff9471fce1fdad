"""Bad input of agents on a graph through the real command line: one line, exit code 2, nothing left."""

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
silos = [{ name = "a", columns = ["x1"] }, { name = "b", columns = ["x2"] }, { name = "c", columns = ["x3"] }]
[model]
l1 = 0.1
l2 = 0.1
[algorithm]
name = "mtcd"
tokens = 2
hops_between_averages = 0
graph = { kind = "file", file = "edges.txt" }
[run]
name = "one"
rounds = 2
threads = 1
"""
)
DCPA = ("algorithm.name=dcpa", "algorithm.tokens=", "algorithm.hops_between_averages=")
APART = ("algorithm.graph.file=apart.txt",)
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a walk on a graph in pieces": (APART, ("algorithm.graph has 2 pieces", "'c' cannot be reached from 'a'")),
    "consensus on a graph in pieces": ((*DCPA, *APART), ("algorithm.graph has 2 pieces", "consensus needs")),
    "an edge to nobody": (
        ("algorithm.graph.file=stranger.txt",),
        ("stranger.txt:2", "unknown agent 'd'", "The agents are a, b, c, or 0 to 2"),
    ),
    "an agent without features": (
        ("federation.silos=[{name='a', columns=['x1']}, {name='b', columns=[]}]",),
        ("silo 'b' has no columns", "give it columns"),
    ),
    "more tokens than agents": (("algorithm.tokens=4",), ("algorithm.tokens = 4", "there are 3 agents")),
    "a regulariser of no known kind": (("model.nuclear=0.1",), ("unknown key model.nuclear", "l1, l2")),
    "a step size above the limit": (
        ("algorithm.step_size=9",),
        ("algorithm.step_size = 9 is not below 0.", "two over the smoothness", "block of 'a'"),
    ),
    "a dual step above the limit": (
        (*DCPA, "algorithm.step_size=1", "algorithm.dual_step=9"),
        ("algorithm.dual_step = 9 is above 0", "at most 1 / (step_size 1 x"),
    ),
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config beside its table and edge lists."""
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "good.toml").write_text(CONFIG)
    (folder / "edges.txt").write_text("a b\n1 2  # b and c\n")
    (folder / "apart.txt").write_text("a b\n")
    (folder / "stranger.txt").write_text("a b\nb d\n")
    write_table(folder / "people.csv")
    return folder / "good.toml"


def test_the_input_is_good_before_it_is_made_bad(config: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", config)
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("name", CASES)
def test_is_refused_in_one_line(name: str, config: Path, command: Command) -> None:  # noqa: F811
    changes, words = CASES[name]
    ended = command("train", config, *(part for change in changes for part in ("--set", change)))
    require_refusal(ended.code, ended.out, ended.err, words)
    assert left_behind(Path.cwd()) == []
