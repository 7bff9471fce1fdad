"""`crosshatch reproduce`: what it lists, and what it refuses in a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crosshatch.reproduce.all_recipes import LATER, RECIPES
from tests.support.command_line import Command

REFUSED = {
    "an unknown recipe": (("run", "fedbcd-fig22"), "unknown recipe 'fedbcd-fig22': did you mean 'fedbcd-fig2'?"),
    "an unknown profile": (("run", "mtcd-fig3", "--profile", "fast"), "--profile fast: choose quick or full"),
    "an unknown profile of the list": (("list", "--profile", "fast"), "--profile fast: choose quick or full"),
    "no job": (("run", "mtcd-fig3", "--jobs", "0"), "--jobs 0: at least 1 run at a time"),
    "a file to write into": (("run", "mtcd-fig3", "--out", "here.txt"), "here.txt is a file: choose another --out"),
    "a file to list": (("list", "--out", "here.txt"), "here.txt is a file: choose another --out"),
    "a page of nothing": (("page", "--out", "nowhere"), "no runs in nowhere: `crosshatch reproduce run` makes them"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused_in_a_line(case: str, command: Command) -> None:
    Path("here.txt").write_text("")
    words, told = REFUSED[case]
    ended = command("reproduce", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert told in ended.err
    assert sorted(path.name for path in Path().iterdir()) == ["here.txt"]


def test_a_docs_page_that_cannot_be_written(command: Command) -> None:
    Path("out/runs").mkdir(parents=True)
    ended = command("reproduce", "page", "--out", "out", "--docs", "gone/page.md")
    assert ended.code == 2
    assert "cannot write gone/page.md" in ended.err
    assert "choose another --docs" in ended.err


def test_the_list_has_every_recipe_with_runs_data_and_time(command: Command) -> None:
    lines = json.loads(command("reproduce", "list", "--json").out)
    assert [line["id"] for line in lines] == [*RECIPES, *LATER]
    for line in lines[: len(RECIPES)]:
        assert line["runs"] > line["known"] == 0
        assert line["seconds"] == 60 * RECIPES[line["id"]].minutes
        assert line["there"] == (line["data"] == ["made here"])  # there is no data folder
    words = command("reproduce", "list").out
    for name in (*RECIPES, *LATER):
        assert f"\n{name} " in f"\n{words}"
    assert "0 of 30 runs known, about 4 min 00 s of processor time" in words


def test_absent_data_are_told_and_stop_nothing(command: Command) -> None:
    ended = command("reproduce", "run", "icassp-fig2a", "tdcd", "--out", "out", "--quiet")
    assert ended.code == 0
    assert "icassp-fig2a         not run: data absent: no file superconductivity.npz" in ended.out
    assert ended.out.endswith("0 runs trained\n")
    assert "tdcd: not there yet" in ended.err
    told = json.loads(Path("out/icassp-fig2a/result.json").read_text())
    assert (told["verdict"], told["why"][:34]) == ("not run", "data absent: no file superconducti")
