"""Nobody asks which class an algorithm is, or looks its attributes up by name: it declares what others need to know."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosshatch.runs.config_names import ALGORITHMS
from tests.architecture.modules import Module, imports, modules

TABLE = "crosshatch.runs.config_names"
DECLARED = "crosshatch.exchanges.declared"
# The package's own exports, and the cases that other implementations are held against, name algorithms to make them.
MAKERS = ("crosshatch", "crosshatch.testing")
PROTOCOLS = frozenset(("Algorithm", "TokenAlgorithm", "DualAlgorithm", "Declared", "Planned"))
BY_NAME = frozenset(("getattr", "hasattr", "setattr", "vars"))


def classes() -> frozenset[str]:
    """What algorithms' classes are called."""
    return PROTOCOLS | {kind.__name__ for kind in ALGORITHMS.values()}


def complaints(module: Module) -> list[str]:
    """One line for every place that finds out about an algorithm instead of reading its declarations."""
    if module.name in (TABLE, DECLARED):
        return []
    found, kinds = [], known(module)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            if node.func.id in BY_NAME and is_algorithm(node.args[0], module):
                found.append((node.lineno, f"{node.func.id} of an algorithm: declare it in exchanges/declared.py"))
            if node.func.id in ("isinstance", "issubclass") and names(node.args[1]) & kinds:
                found.append((node.lineno, f"{node.func.id} with an algorithm's class: declare what it is asked for"))
        if isinstance(node, ast.Compare) and any(names(side) & kinds for side in node.comparators):
            found.append((node.lineno, "compares an algorithm's class: declare what it is asked for"))
        if isinstance(node, ast.MatchClass) and names(node.cls) & kinds:
            found.append((node.lineno, "matches an algorithm's class: declare what it is asked for"))
    return [f"{module.place}:{line}: {text}" for line, text in found]


def is_algorithm(node: ast.expr, module: Module) -> bool:
    """By what it is called: `algorithm`, `stored.algorithm`, and `self` in an algorithm's own file."""
    if isinstance(node, ast.Name):
        return node.id == "algorithm" or (node.id == "self" and module.name.startswith("crosshatch.algorithms."))
    return isinstance(node, ast.Attribute) and node.attr == "algorithm"


def known(module: Module) -> frozenset[str]:
    """Names in the module that stand for algorithms' classes: imported ones, and others they are part of."""
    here = {name.rpartition(".")[2] for _, name in imports(module) if in_algorithms(name)} & classes()
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and names(node.value) & here:
            here |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(here)


def in_algorithms(name: str) -> bool:
    """Whether a dotted name may be an algorithm's class: `crosshatch.TDCD`, `crosshatch.algorithms.tdcd.TDCD`."""
    return name.startswith(("crosshatch.algorithms.", "crosshatch.exchanges")) or name.count(".") == 1


def names(node: ast.expr) -> set[str]:
    """The names in an expression."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def named_elsewhere(module: Module) -> Iterator[str]:
    """One line for every import of an algorithm outside the table of names."""
    if module.name == TABLE or module.name in MAKERS or module.name.startswith(("crosshatch.algorithms", *MAKERS[1:])):
        return
    for line, name in imports(module):
        if name.startswith("crosshatch.algorithms."):
            yield f"{module.place}:{line}: imports {name}; algorithms are listed in runs/config_names.py alone"


def test_nobody_finds_out_about_an_algorithm() -> None:
    assert [line for module in modules() for line in complaints(module)] == []


def test_algorithms_are_listed_in_the_table_of_names_alone() -> None:
    assert [line for module in modules() for line in named_elsewhere(module)] == []


def module(name: str, text: str) -> Module:
    """A module that is not on disk, to try the rules on."""
    return Module(name, Path("/").joinpath(*name.split(".")).with_suffix(".py"), text)


IMPORT = "from crosshatch.algorithms.tdcd import TDCD\nfrom crosshatch.algorithms.hsgd import HSGD\n"


@pytest.mark.parametrize(
    "text",
    [
        'x = getattr(algorithm, "central", False)',
        'x = hasattr(config.algorithm, "pairs")',
        'x = getattr(self.simulator.algorithm, "pairs")',
        IMPORT + "x = isinstance(algorithm, TDCD)",
        IMPORT + "x = isinstance(found, (TDCD, int))",
        IMPORT + "Planned = TDCD | HSGD\nx = isinstance(found, Planned)",
        IMPORT + "x = type(found) is TDCD",
        IMPORT + "x = kind in (TDCD, HSGD)",
        IMPORT + "match found:\n    case TDCD():\n        pass",
        "from crosshatch.exchanges import TokenAlgorithm\nx = isinstance(algorithm, TokenAlgorithm)",
        "from crosshatch import TDCD\nx = isinstance(algorithm, TDCD)",
    ],
)
def test_rule_catches(text: str) -> None:
    assert len(complaints(module("crosshatch.simulator.example", text))) == 1


def test_rule_catches_an_algorithm_that_looks_itself_up() -> None:
    text = "class A:\n    def f(self):\n        return getattr(self, 'x')"
    assert len(complaints(module("crosshatch.algorithms.example", text))) == 1
    assert complaints(module("crosshatch.graphs", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "from crosshatch.exchanges import declared\nx = declared(algorithm).central",
        "x = getattr(task.regulariser, 'separable', False)",
        "from crosshatch.theory.central_loss import Central\nx = isinstance(found, Central)",
        "x = isinstance(algorithm.step_size, str)",
    ],
)
def test_rule_allows(text: str) -> None:
    assert complaints(module("crosshatch.simulator.example", text)) == []


def test_rule_catches_imports() -> None:
    assert len(list(named_elsewhere(module("crosshatch.runs.example", IMPORT)))) == 2
    assert list(named_elsewhere(module(TABLE, IMPORT))) == []
