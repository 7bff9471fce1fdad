"""The page of messages quotes what the code says: no message there is one that nobody can get."""

from __future__ import annotations

import re

import pytest

from tests.architecture.modules import ROOT, modules
from tests.support.prose import said

PAGE = ROOT / "docs" / "howto" / "troubleshooting.md"
ROW = re.compile(r"^\| (?P<quoted>`[^|]*?) \|", re.MULTILINE)
QUOTED = re.compile(r"`([^`]+)`")


def quoted_messages() -> list[str]:
    """What stands in the first column of its tables, between the marks of code."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return [message for row in rows for message in QUOTED.findall(row)]


def pattern(message: str) -> re.Pattern[str]:
    """A message as a pattern: what is filled in (`...`) may be anything.

    >>> bool(pattern("no file ...: check").search("no file 1: check the path"))
    True
    """
    return re.compile(".*?".join(map(re.escape, message.split("..."))), re.DOTALL)


@pytest.fixture(scope="module")
def spoken() -> list[str]:
    """Every string of the package."""
    return [text for module in modules() for _, text in said(module)]


def test_there_are_messages() -> None:
    assert len(quoted_messages()) > 40


@pytest.mark.parametrize("message", quoted_messages())
def test_message_exists(message: str, spoken: list[str]) -> None:
    wanted = pattern(message)
    assert any(wanted.search(text) for text in spoken), "no string of the code says so: correct the page"


def test_another_message_does_not() -> None:
    assert not pattern("no file ...: call us").search("no file 1: check the path")
