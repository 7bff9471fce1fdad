"""Documentation and messages are in plain English: "per" for rates, "is not a" for denials, lines of about 100."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.modules import ROOT, modules
from tests.architecture.pages import FENCE, pages
from tests.support.prose import said

WIDEST = 100

_COUNTED = r"(?:one|two|eight|several)"
_TIMED = r"(?:once|twice|[0-9][0-9.]*(?: m?s)?)"
_THINGS = (
    r"(?:batches|bits|bytes|clients|devices|equation|exchanges|images|labels|megabits|messages|numbers|outputs|"
    r"rows|samples|seconds|steps|visits)"
)
_EACH = (
    r"(?:agent|batch|class|client|device|edge|evaluation|group|id|kind|line|local step|message|party|round|round trip|"
    r"run|sample|score|second|section|silo|step|target|token|value|visit)"
)
# With a verb or a preposition between number and article it is an ordinary sentence: "one has a client".
RATE = re.compile(rf"\b(?:{_COUNTED}(?: (?!(?:is|has|needs|was|of|with|in|for|as)\b)[\w`]+)?|{_TIMED}) an? {_EACH}\b")
MANY = re.compile(rf"\b{_THINGS} an? {_EACH}\b(?! (?:has|holds|sends)\b)")
DENIAL = re.compile(r"(?<!there )\bis no (?:chain|client|edge|entry|feature|multiple|run directory|silo|table|text)\b")
VALUES = re.compile(r"\btruth values\b|\blist of texts\b|\bis a text\b|expected text\b")
# Nothing is published under that name: ".[ray]" in its folder.
PUBLISHED = re.compile(r"\bcrosshatch\[\w*\]?|\bpip install [\"']?crosshatch\b")
RULES = (RATE, MANY, DENIAL, VALUES, PUBLISHED)


def odd(text: str) -> list[str]:
    """What the rules find in a text, however its lines are broken.

    >>> odd("one message a\\n    client; one client per silo")
    ['one message a client']
    """
    flat = " ".join(text.split())
    return [found[0] for rule in RULES for found in rule.finditer(flat)]


def prose(text: str) -> list[tuple[int, str]]:
    """Number and text of the lines of a page outside fenced blocks, tables, formulas, pictures and comments."""
    found = []
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if fence:
            fence = "" if stripped == fence else fence
        elif opened := FENCE.match(line):
            fence = opened["fence"]
        elif not stripped.startswith(("|", "$$", "![", "<!--")):
            found.append((number, line))
    return found


PAGES = [
    pytest.param(page, id=page.relative_to(ROOT).as_posix())
    for page in [*pages(ROOT), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md"]
]


@pytest.mark.parametrize("page", PAGES)
def test_prose_is_wrapped(page: Path) -> None:
    long = [number for number, line in prose(page.read_text(encoding="utf-8")) if len(line) > WIDEST]
    assert long == [], f"{page.name}: break these lines at {WIDEST} characters"


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_in_plain_english(page: Path) -> None:
    assert odd(page.read_text(encoding="utf-8")) == []


def test_messages_and_docstrings_are_in_plain_english() -> None:
    found = [
        f"{module.place}:{line}: {words}" for module in modules() for line, text in said(module) for words in odd(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "10 s a round trip",
        "one client a\nsilo",
        "14 megabits a second",
        "one row an id",
        "2 is no multiple of 3",
        "pip install 'crosshatch[ray]'",
        "pip install crosshatch",
    ],
)
def test_rules_catch(text: str) -> None:
    assert odd(text) != []


@pytest.mark.parametrize(
    "text",
    ["a client sends", "half a round trip", "one client per silo", "there is no silo", 'pip install ".[ray]"'],
)
def test_rules_allow(text: str) -> None:
    assert odd(text) == []


def test_prose_leaves_out_what_cannot_be_broken() -> None:
    page = "one\n```text\ntwo\n```\n| three |\n$$four$$\n![five](x.png)\n<!-- file: six -->\nseven"
    assert prose(page) == [(1, "one"), (9, "seven")]
