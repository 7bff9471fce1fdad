"""What a sum and a head do differently is said in task/ alone: elsewhere nobody asks which of the two it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.modules import Module, modules

KINDS = {"Sum", "Head"}
HOME = "crosshatch.task"


def told_apart(module: Module) -> list[str]:
    """One line for every place outside task/ that asks whether a fusion is a sum or a head."""
    if module.name.startswith(f"{HOME}."):
        return []
    return [
        f"{module.place}:{node.lineno}: {ast.unparse(node)}: ask the fusion, or whether `task.head` is None"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.expr | ast.pattern) and _kinds_asked(node) & KINDS
    ]


def _kinds_asked(node: ast.expr | ast.pattern) -> set[str]:
    """The classes in `isinstance(x, A | B)`, in `type(x) is A`, and in `case A():`, by their last names."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
        asked: list[ast.AST] = [*node.args[1:]]
    elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
        asked = [*node.comparators]
    elif isinstance(node, ast.MatchClass):
        asked = [node.cls]
    else:
        return set()
    return {_last_name(inner) for one in asked for inner in ast.walk(one)}


def _last_name(node: ast.AST) -> str:
    """`Head` of `Head` and of `fusion.Head`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def test_only_task_tells_fusions_apart() -> None:
    found = [line for module in modules() for line in told_apart(module)]
    assert not found, "\n".join(found)


def module(name: str, text: str) -> Module:
    """A module that is not on disk, to try the rule on."""
    return Module(name, Path("/").joinpath(*name.split(".")).with_suffix(".py"), text)


@pytest.mark.parametrize(
    "text",
    [
        "if isinstance(task.fusion, Head): pass",
        "summed = not isinstance(fusion, Sum) and plain",
        "isinstance(it, Sum | Head)",
        "isinstance(it, (int, fusion.Head))",
        "type(task.fusion) is Sum",
        "match task.fusion:\n    case Head(module): pass",
    ],
)
def test_rule_catches(text: str) -> None:
    assert len(told_apart(module("crosshatch.local.loop", text))) == 1
    assert told_apart(module("crosshatch.task.task", text)) == []


@pytest.mark.parametrize("text", ["isinstance(it, Header)", "task.head is None", "fusion = Head(module, 0)"])
def test_rule_allows(text: str) -> None:
    assert told_apart(module("crosshatch.local.loop", text)) == []
