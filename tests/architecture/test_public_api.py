"""The public API is `crosshatch.__all__`: pinned here, and every name with an example that is run."""

from __future__ import annotations

import inspect

import pytest

import crosshatch

# Sorted as sorted() does. Adding a name here is a promise to users; removing one breaks it: say so in CHANGELOG.md.
EXPORTED: list[str] = []


def test_exports_are_pinned() -> None:
    assert list(getattr(crosshatch, "__all__", [])) == EXPORTED
    assert sorted(EXPORTED) == EXPORTED


@pytest.mark.parametrize("name", EXPORTED)
def test_export_has_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(crosshatch, name)) or ""
    assert ">>> " in text, f"give the docstring of crosshatch.{name} an example; the test run executes it"


@pytest.mark.parametrize("name", EXPORTED)
def test_export_is_listed_by_dir(name: str) -> None:
    assert name in dir(crosshatch), "exports resolved late must be in __dir__ too: completion and the docs rely on it"
