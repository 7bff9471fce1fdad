"""Whatever the package defines, the package uses: what only tests call is no part of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import crosshatch
from tests.architecture.modules import Module, modules

# Not called in the package, and right so.
EXPECTED = {
    "LINE_CHECKS": "for the tests of any line",
    "_should_skip_dynamo": "torch asks for it when the class is made",
    "check_values": "for the tests of any case",
    "demo": "a command: typer calls it",
    "persistent_id": "pickle asks for it",
    "persistent_load": "pickle asks for it",
    "reducer_override": "pickle asks for it",
    "run_flops": "written into summary.json",
    "share_derivatives": "for texts written before there was exchange",
    "step_flops": "written into summary.json",
    "step_memory": "written into summary.json",
}


def defined(module: Module) -> Iterator[str]:
    """Functions, methods, classes and constants, but those Python itself looks for."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.Module | ast.ClassDef):
            for line in node.body:
                targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def used(module: Module) -> Iterator[str]:
    """Names that are read, looked up or passed on; as text too, but in a package's list of exports."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not module.is_package:
            yield node.value


def unused(every: tuple[Module, ...], exported: frozenset[str]) -> list[str]:
    """What nobody uses, by name."""
    known = {name for module in every for name in used(module)} | exported
    found = {name for module in every for name in defined(module)} - known
    return sorted(name for name in found if not name.startswith("__"))


def test_everything_is_used() -> None:
    assert unused(modules(), frozenset(crosshatch.__all__)) == sorted(EXPECTED)


def test_rule() -> None:
    text = "USED = 1\nIDLE = 2\ndef f():\n    return USED\nclass A:\n    x: int = f()\n    def g(self): ...\n"
    one = Module("crosshatch.example", Path("/example.py"), text)
    assert unused((one,), frozenset(["A"])) == ["IDLE", "g", "x"]
