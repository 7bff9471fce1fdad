"""Errors that say where: in one place of the package, with the same words as before."""

from __future__ import annotations

import ast

import pytest

from crosshatch.codecs import parse_codec
from crosshatch.errors import ConfigError, CrosshatchError, DataError, ModelError, one_line, saying_where
from crosshatch.schedules import parse_schedule
from tests.architecture.modules import Module, modules


def rewrapped(module: Module) -> list[str]:
    """Handlers that raise what they caught again with something in front."""
    return [
        f"{module.place}:{node.lineno}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and node.name and ends_with_error(node, node.name)
    ]


def ends_with_error(handler: ast.ExceptHandler, name: str) -> bool:
    """Whether all it does is to raise an f-string `...: {error}`."""
    last = handler.body[-1]
    if not (isinstance(last, ast.Raise) and isinstance(last.exc, ast.Call) and last.exc.args):
        return False
    text = last.exc.args[0]
    if not isinstance(text, ast.JoinedStr) or len(text.values) < 2:
        return False
    before, value = text.values[-2:]
    shown = isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Name) and value.value.id == name
    colon = isinstance(before, ast.Constant) and before.value in (": ", "': ")
    return shown and colon


def test_errors_are_told_their_place_in_one_place() -> None:
    found = [line for module in modules() for line in rewrapped(module)]
    assert [line.split(":")[0] for line in found] == ["src/crosshatch/errors.py"]


@pytest.mark.parametrize("kind", [ConfigError, ModelError])
def test_the_kind_stays(kind: type[CrosshatchError]) -> None:
    with pytest.raises(kind, match=r"^here: too small$") as caught, saying_where("here"):
        raise kind("too small")
    assert type(caught.value) is kind


def test_other_kinds_are_left_alone() -> None:
    with pytest.raises(DataError, match=r"^no file$"), saying_where("here", ConfigError):
        raise DataError("no file")
    with pytest.raises(KeyError), saying_where("here"):
        raise KeyError("x")


def test_the_first_cause_stays() -> None:
    first = ValueError("at the bottom")
    with pytest.raises(ModelError) as caught, saying_where("silo 'a'"):
        raise ModelError("the file of a block could not be read") from first
    assert caught.value.__cause__ is first


def test_one_line() -> None:
    assert one_line(ValueError("two\n   lines\tof it ")) == "two lines of it"


def test_places_in_configs() -> None:
    with pytest.raises(ConfigError, match=r"^codecs\.share: "):
        parse_codec("nonsense(", place="codecs.share")
    with pytest.raises(ConfigError, match=r"^algorithm\.step_size: "):
        parse_schedule({"kind": "nonsense"})
