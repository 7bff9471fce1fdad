"""The modules of the package, and what each of them imports, read from the source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@dataclass(frozen=True)
class Module:
    """One file of the package: its dotted name, where it is, and its text."""

    name: str
    path: Path
    text: str

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def place(self) -> str:
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.as_posix()

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.place)


def modules() -> tuple[Module, ...]:
    """Every module below src/crosshatch, sorted by path."""
    found = []
    for path in sorted((SOURCE / "crosshatch").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path, path.read_text(encoding="utf-8")))
    return tuple(found)


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything the module imports: late imports and those for types only included.

    `from a import b` gives `a.b`: whether `b` is a module or a name inside `a`, its first parts say where it lives.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            for alias in node.names:
                yield node.lineno, f"{origin}.{alias.name}"


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        assert node.module is not None, "only relative imports may leave the module out"
        return node.module
    package = module.name.split(".") if module.is_package else module.name.split(".")[:-1]
    parents = package[: len(package) - (node.level - 1)]
    return ".".join([*parents, node.module] if node.module else parents)
