"""Tables to settings, and the words of every refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import pytest

from crosshatch.errors import ConfigError
from crosshatch.runs.tables.decode import decode, describe


class Extra(TypedDict, total=False):
    size: int


@dataclass(frozen=True)
class Inner:
    name: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outer:
    count: int
    ratio: float | None = None
    kind: Literal["sum", "head"] = "sum"
    pair: tuple[int, int] = (0, 0)
    inner: Inner | None = None
    several: tuple[Inner, ...] | int = ()
    named: dict[str, Inner] = field(default_factory=dict)
    extras: dict[str, Extra] = field(default_factory=dict)
    free: dict[str, object] = field(default_factory=dict)


def test_everything_at_once() -> None:
    table = {
        "count": 3,
        "ratio": 1,
        "kind": "head",
        "pair": [1, 2],
        "inner": {"name": "x", "sizes": [1, 2]},
        "several": [{"name": "y"}, {"name": "z"}],
        "named": {"w": {"name": "v"}},
        "extras": {"a": {"size": 4}},
        "free": {"any": [1, "two"]},
    }
    assert decode(table, Outer, "s") == Outer(
        3, 1.0, "head", (1, 2), Inner("x", (1, 2)), (Inner("y"), Inner("z")), {"w": Inner("v")}, {"a": {"size": 4}},
        {"any": [1, "two"]},
    )  # fmt: skip
    assert decode({"count": 1, "several": 2}, Outer, "s").several == 2


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"counts": 3}, "unknown key s.counts: did you mean 'count'? Allowed are count, extras, free, inner, kind"),
        ({"count": 1, "zzz": 3}, "unknown key s.zzz: Allowed are count"),
        ({}, "s.count is missing: give a whole number"),
        ({"count": "3"}, "s.count = '3': expected a whole number"),
        ({"count": True}, "s.count = true: expected a whole number"),
        ({"count": 1.5}, "s.count = 1.5: expected a whole number"),
        ({"count": 1, "ratio": "x"}, "s.ratio = 'x': expected a number"),
        ({"count": 1, "kind": "sums"}, "s.kind = 'sums': expected 'sum' or 'head'"),
        ({"count": 1, "pair": [1]}, "s.pair = [1]: expected a list of 2 whole numbers"),
        ({"count": 1, "inner": 4}, "s.inner = 4: expected a table of settings"),
        ({"count": 1, "inner": {"nam": "x"}}, "unknown key s.inner.nam: did you mean 'name'?"),
        ({"count": 1, "several": "no"}, "s.several = 'no': expected a list of tables or a whole number"),
        ({"count": 1, "several": [{"name": "a"}, {"name": 1}]}, "s.several[1].name = 1: expected a string"),
        ({"count": 1, "several": [3]}, "s.several[0] = 3: expected a table of settings"),
        ({"count": 1, "named": {"w": {"siz": 1}}}, "unknown key s.named.w.siz: did you mean 'sizes'?"),
        ({"count": 1, "extras": {"a": {"size": "x"}}}, "s.extras.a.size = 'x': expected a whole number"),
        ([1], "s = [1]: expected a table of settings"),
    ],
)
def test_refusals(table: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        decode(table, Outer, "s")
    assert words in str(caught.value)


def test_long_values_are_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        decode({"count": "x" * 500}, Outer, "s")
    assert len(str(caught.value)) < 150


def test_words_for_types() -> None:
    assert describe(bool) == "true or false"
    assert describe(tuple[Inner, ...]) == "a list of tables"
    assert describe(int | Literal["each"]) == "a whole number or 'each'"
