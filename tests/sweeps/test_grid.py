"""Which runs a sweep has, what they are called, and what it refuses."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import ConfigError
from crosshatch.runs.run_settings import is_name
from crosshatch.sweeps.grid import MOST_RUNS, Axis, Seeds, parse_grid, parse_seeds, point_names, points, run_name

FOLDER = re.compile(r"[A-Za-z0-9_.+=,-]+")


def test_every_combination_in_the_order_of_nested_loops() -> None:
    axes = parse_grid(["algorithm.step_size=0.1,0.3", "algorithm.local_steps=1,5,10"])
    naive = [(step, local) for step in ("0.1", "0.3") for local in ("1", "5", "10")]
    assert points(axes, Seeds()) == naive
    assert point_names(axes, naive)[1] == "step_size=0.1,local_steps=5"
    assert run_name("step_size=0.1", 3) == "step_size=0.1,seed=3"


def test_commas_inside_a_value() -> None:
    (axis,) = parse_grid(['algorithm.step_size={kind = "halving", value = 1, every = 5}, 0.1, "a,b", [[1, 2], [3]]'])
    assert axis.values == ('{kind = "halving", value = 1, every = 5}', "0.1", '"a,b"', "[[1, 2], [3]]")


def test_sections_are_named_where_keys_are_alike() -> None:
    axes = parse_grid(["model.kind=a,b", "network.kind=a,b"])
    assert point_names(axes, [("a", "b")]) == ["model.kind=a,network.kind=b"]


values = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60), min_size=1, max_size=4)


@given(st.lists(values, min_size=1, max_size=3))
def test_names_are_folders_and_differ(many: list[list[str]]) -> None:
    axes = [Axis(f"section.key{i}", tuple(one)) for i, one in enumerate(many)]
    found = list(itertools.product(*many))
    names = [run_name(name, 0) for name in point_names(axes, found)]
    assert len({name.casefold() for name in names}) == len(found)
    assert all(FOLDER.fullmatch(name) and is_name(name) and len(name) < 200 for name in names)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (["algorithm.step_size"], "write section.key=value,value"),
        (["step_size=1,2"], "write section.key=value,value"),
        (["algorithm.=1"], "write section.key=value,value"),
        (["=1,2"], "write section.key=value,value"),
        (["algorithm.step_size="], "a value is empty"),
        (["algorithm.step_size=0.1,,1"], "a value is empty"),
        (["algorithm.step_size=0.1,"], "a value is empty"),
        (["algorithm.step_size=0.1,1,0.10"], "the value 0.10 stands there twice"),
        (["algorithm.step_size=1", "algorithm.step_size=2"], "algorithm.step_size is set twice"),
        (["algorithm.batch_size=1"], "algorithm.batch_size is set twice"),
        (["run.seed=1,2"], "seeds are given by --seeds"),
        (["run.name=a,b"], "the runs are named after their values"),
    ],
)
def test_refused_grids(grid: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        parse_grid(grid, changes=["algorithm.batch_size=64"])
    assert str(caught.value).startswith("--grid ")


def test_one_is_not_true() -> None:
    assert parse_grid(["model.bias=1,true"])[0].values == ("1", "true")


@pytest.mark.parametrize("text", ["", "0", "-1", "a", "1.5", "3,", "3,3", "3,x", "٣", "10001"])
def test_refused_seeds(text: str) -> None:
    with pytest.raises(ConfigError, match="--seeds"):
        parse_seeds(text)


def test_seeds_count_from_that_of_the_config() -> None:
    assert parse_seeds("3").beside(40) == (40, 41, 42)
    assert parse_seeds(" 3, 11 ").beside(40) == (3, 11)


def test_too_many_runs_and_too_few() -> None:
    many = (Axis("a.b", tuple(str(i) for i in range(101))),)
    with pytest.raises(ConfigError, match=r"10,100 runs \(101 points x 100 seeds\)"):
        points(many, parse_seeds("100"))
    assert len(points(many, parse_seeds("99"))) * 99 <= MOST_RUNS
    with pytest.raises(ConfigError, match="one run only"):
        points((), parse_seeds("1"))
