"""Files stay short, carry telling names, and leave nothing unfinished or swallowed."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.architecture.modules import ROOT, SOURCE, Module, imports, modules

LONGEST = 300
FULLEST = 14
# A file that is better in one piece: its path, its limit (500 at most) and, beside it, why.
ALLOWANCE: dict[str, int] = {}
EMPTY_NAMES = {"utils.py", "util.py", "common.py", "base.py", "helpers.py", "misc.py"}
# What Python itself wants to be called so.
SHARED_NAMES = {"__init__.py", "__main__.py"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
BROAD = {"Exception", "BaseException"}


def unfinished(module: Module) -> list[str]:
    """Places that promise something for later."""
    notes = [
        f"{module.place}:{number}: {line.strip()}"
        for number, line in enumerate(module.text.splitlines(), start=1)
        if UNFINISHED.search(line)
    ]
    tree = module.tree  # parsed once: nodes are told apart by identity
    abstract = {
        id(inner)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any("abstractmethod" in ast.unparse(decorator) for decorator in function.decorator_list)
        for inner in ast.walk(function)
    }
    holes = [
        f"{module.place}:{node.lineno}: raises NotImplementedError"
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node) and id(node) not in abstract
    ]
    return notes + holes


def swallowed(module: Module) -> list[str]:
    """Handlers that catch everything and do not raise again."""
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.ExceptHandler):
            continue
        caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        broad = any(kind is None or ast.unparse(kind) in BROAD for kind in caught)
        if broad and not any(isinstance(inner, ast.Raise) for inner in ast.walk(node)):
            found.append(f"{module.place}:{node.lineno}: catches everything and goes on: name the errors expected")
    return found


def test_no_file_is_too_long() -> None:
    lengths = {module.place: len(module.text.splitlines()) for module in modules()}
    long = {place: n for place, n in lengths.items() if n > ALLOWANCE.get(place, LONGEST)}
    assert not long, f"longer than {LONGEST} lines, divide them: {long}"


def test_allowances_are_needed_and_moderate() -> None:
    lengths = {module.place: len(module.text.splitlines()) for module in modules()}
    assert {place for place in ALLOWANCE if lengths.get(place, 0) <= LONGEST} == set(), "no longer needed"
    assert all(limit <= 500 for limit in ALLOWANCE.values())


def test_no_folder_is_too_full() -> None:
    count = Counter(module.path.parent for module in modules() if not module.is_package)
    assert {str(folder): n for folder, n in count.items() if n > FULLEST} == {}, "divide them by what they are about"


def test_no_file_is_named_after_nothing() -> None:
    assert [module.place for module in modules() if module.path.name in EMPTY_NAMES] == []


def test_no_two_files_have_one_name() -> None:
    named = [module.path.name for module in modules()]
    twice = {name for name, n in Counter(named).items() if n > 1} - SHARED_NAMES
    assert [module.place for module in modules() if module.path.name in twice] == [], "searching should find one"


def test_nothing_is_unfinished() -> None:
    assert [line for module in modules() for line in unfinished(module)] == []


def test_no_error_is_swallowed() -> None:
    assert [line for module in modules() for line in swallowed(module)] == []


def test_every_module_says_what_it_is() -> None:
    silent = [module.place for module in modules() if module.text.strip() and ast.get_docstring(module.tree) is None]
    assert silent == []


def test_files_that_are_not_code_are_packaged() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["*"]
    package = SOURCE / "crosshatch"
    others = [path for path in package.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    assert [str(path) for path in others if not any(fnmatch(path.name, pattern) for pattern in patterns)] == []


def module(text: str) -> Module:
    """A module that is not on disk, to try the rules on."""
    return Module("crosshatch.example", Path("/crosshatch/example.py"), text)


@pytest.mark.parametrize("text", ["x = 1  # TODO later", "def f():\n    raise NotImplementedError('soon')"])
def test_rule_catches_unfinished(text: str) -> None:
    assert len(unfinished(module(text))) == 1


def test_rule_allows_abstract_methods() -> None:
    assert (
        unfinished(module("class A:\n    @abstractmethod\n    def f(self):\n        raise NotImplementedError")) == []
    )


@pytest.mark.parametrize("kind", ["", " Exception", " (ValueError, Exception)", " BaseException as error"])
def test_rule_catches_swallowed(kind: str) -> None:
    assert len(swallowed(module(f"try:\n    f()\nexcept{kind}:\n    pass"))) == 1


@pytest.mark.parametrize("handler", ["except OSError:\n    pass", "except BaseException:\n    clean()\n    raise"])
def test_rule_allows_handlers(handler: str) -> None:
    assert swallowed(module(f"try:\n    f()\n{handler}")) == []


def test_tests_do_not_import_from_each_other() -> None:
    """Shared functions are in tests/support; a fixture of another folder's conftest is the exception."""
    fixtures = {"tests.cli.conftest.command"}
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for line, name in imports(Module(".".join(path.relative_to(ROOT).with_suffix("").parts), path, text)):
            owner = name.rpartition(".")[0].rpartition(".")[2]
            if (
                name.startswith("tests.")
                and (owner.startswith("test_") or owner == "conftest")
                and name not in fixtures
            ):
                found.append(f"{path.relative_to(ROOT)}:{line}: {name}")
    assert found == []
