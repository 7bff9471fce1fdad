"""Nothing is called hidden, private, secret, safe or protected, and nobody said to learn something, without a review.

Every sentence with one of these words, on pages, in docstrings and in messages, is in the list beside this file, once
somebody has read it and found that a figure, a theorem or an attack bears it out, or that it denies or limits what it
names. A new sentence fails until it is read and added: `python -m tests.architecture.test_claims` writes the list anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.modules import ROOT, modules
from tests.architecture.pages import pages
from tests.architecture.test_prose import said

REVIEWED = Path(__file__).with_name("reviewed_claims.txt")
CLAIM = re.compile(r"\b(?:hidden|private|secret|safe|protects|learns)\b", re.IGNORECASE)
# Hidden layers and units are parts of networks, and pages in HTML hide elements.
ELSEWHERE = re.compile(r"hidden (?:layers?|units?|sizes?|state)|model\.hidden|, hidden\)|>>> .*|<.*>", re.IGNORECASE)
_NO_PROSE = re.compile(r"```.*?```|<!--.*?-->|`[^`]*`", re.DOTALL)
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*`-])|\n\s*\n|\n(?=[|#-] ?)|\|")


def sentences(text: str) -> Iterator[str]:
    """Those with one of the words, in one line each.

    >>> list(sentences("All is well. Nothing is *hidden*\\n    here. A hidden layer."))
    ['Nothing is *hidden* here.']
    """
    for part in _END.split(_NO_PROSE.sub("`...`", text)):
        flat = " ".join((part or "").split())
        if CLAIM.search(ELSEWHERE.sub("", flat)):
            yield flat


def claims() -> list[str]:
    """Of the whole project, with where each stands."""
    found = set()
    for page in [*pages(ROOT), ROOT / "CHANGELOG.md"]:
        found |= {f"{page.relative_to(ROOT).as_posix()}: {one}" for one in sentences(page.read_text(encoding="utf-8"))}
    for module in modules():
        spoken = (text for _, text in said(module) if " " in text.strip())
        found |= {f"{module.place}: {one}" for text in spoken for one in sentences(text)}
    return sorted(found)


def test_every_claim_was_reviewed() -> None:
    reviewed = REVIEWED.read_text(encoding="utf-8").splitlines()
    assert claims() == reviewed, "read what is new, give it a figure or take it out, then add it to the list"


def test_rule_finds_claims() -> None:
    text = "It is private.\n\nA hidden layer. `hidden`\n| labels | are safe |\nNobody learns it: a *secret*."
    assert list(sentences(text)) == ["It is private.", "are safe", "Nobody learns it: a *secret*."]


if __name__ == "__main__":
    REVIEWED.write_text("\n".join(claims()) + "\n", encoding="utf-8")
