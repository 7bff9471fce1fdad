"""Classes are abstract or final: nobody inherits from a class that does something by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.architecture.modules import Module, modules

# Made to be inherited from, though nothing in them is abstract.
BASES = {
    "AnyRole": "what all roles answer alike", "CrosshatchError": "the root of the errors",
    "Declared": "every declaration has a default", "DrawsBatches": "fields that several methods have",
    "Grouped": "groups, written once for all engines",
    "Planned": "every answer has a default", "Role": "what all parties answer alike", "RunError": "an error",
    "Secret": "what is never printed", "Shown": "a bar begins and ends alike", "Stop": "asked, or out of time",
    "SweepListener": "hears what it likes", "TokenRole": "what agents and server share",
    "TrainingError": "an error", "Watcher": "hears what it likes",
    "_ShownRun": "warnings are shown alike",
}  # fmt: skip


def inherited(every: Iterable[Module]) -> Iterator[str]:
    """Classes of the package that others of it inherit from and in which nothing is abstract."""
    classes = {node.name: node for module in every for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        for base in map(ast.unparse, node.bases):
            name = base.partition("[")[0].rpartition(".")[2]
            if name in classes and not is_abstract(classes[name]):
                yield name


def is_abstract(node: ast.ClassDef) -> bool:
    """Whether it is a protocol, a structure of fields alone, or has something that is left to others."""
    bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
    return bool(bases & {"ABC", "Protocol"}) or "abstractmethod" in ast.unparse(node)


def test_nobody_inherits_from_a_finished_class() -> None:
    assert sorted(set(inherited(modules()))) == sorted(BASES)


def test_rule() -> None:
    text = "class A: ...\nclass B(A): ...\nclass C(ABC): ...\nclass D(C): ..."
    assert list(inherited([Module("crosshatch.example", Path("/example.py"), text)])) == ["A"]
