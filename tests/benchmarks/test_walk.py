"""Calls, files and crossings, on a package of two files in which they can be counted by hand."""

from __future__ import annotations

import doctest
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

import benchmarks.walk
from benchmarks.walk import CASES, Count, Walk, count, main, table, walk

INNER = """
def leaf(x):
    return x + 1

def numbers(n):
    for i in range(n):
        yield leaf(i)
"""
OUTER = """
from functools import reduce

def once(inner):
    return inner.leaf(1)

def often(inner):
    return [inner.leaf(i) for i in range(3)]

def through_the_library(inner):
    return reduce(lambda a, b: a + inner.leaf(b), (1, 2), 0)

def by_generator(inner):
    return sum(inner.numbers(4))

def at_home(inner):
    return once(inner) + once(inner)
"""


def load(path: Path, text: str) -> ModuleType:
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("once", Walk(calls=2, files=2, crossings=1)),
        ("often", Walk(calls=4, files=2, crossings=3)),
        ("through_the_library", Walk(calls=3, files=2, crossings=2)),
        ("by_generator", Walk(calls=6, files=2, crossings=1)),  # the generator once, and its four leaves at home
        ("at_home", Walk(calls=5, files=2, crossings=2)),
    ],
)
def test_counts_by_hand(tmp_path: Path, name: str, expected: Walk) -> None:
    inner, outer = load(tmp_path / "inner.py", INNER), load(tmp_path / "outer.py", OUTER)
    assert walk(lambda: getattr(outer, name)(inner), tmp_path) == expected


def test_a_failure_ends_the_counting(tmp_path: Path) -> None:
    outer = load(tmp_path / "outer.py", OUTER)
    with pytest.raises(AttributeError):
        walk(lambda: outer.once(None), tmp_path)
    assert benchmarks.walk.sys.getprofile() is None  # type: ignore[attr-defined]


def test_rounds_are_the_same_every_time() -> None:
    # What a process looks up once (sizes of messages) is looked up in the first.
    _, first, second = (count(CASES["TDCD, Q = 1"], rounds=4) for _ in range(3))
    assert first == second
    assert first.calls > first.crossings > first.files > 1


def test_table_against_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmarks.walk, "count", lambda _: Count(30, 6, 15, 45.0, 20.0))
    path = tmp_path / "before.json"
    assert main(["--json", str(path)]) == 0
    stored = json.loads(path.read_text())
    assert set(stored) == set(CASES)
    stored["TDCD, Q = 5"]["calls"] = 60
    path.write_text(json.dumps(stored))
    capsys.readouterr()
    assert main(["--against", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "| TDCD, Q = 5 | 60 to 30 (0.50) | 6 to 6 (1.00) |" in printed
    assert "| TDCD, Q = 1 | 30 to 30 (1.00) |" in printed


def test_a_new_case_has_no_ratio() -> None:
    assert "| new | 1 | 1 | 0 | 1.5 | 0 |" in table({"new": Count(1, 1, 0, 1.5, 0.0)}, {})


def test_examples() -> None:
    assert doctest.testmod(benchmarks.walk).failed == 0
