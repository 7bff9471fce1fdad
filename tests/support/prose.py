"""What the strings of a module say."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.modules import Module


def said(module: Module) -> Iterator[tuple[int, str]]:
    """Line and text of every string in a module, docstrings included; what an f-string fills in is left blank."""
    inside: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            parts = [str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value
