"""Nothing is called hidden, private, secret, safe or protected, and nobody said to learn something, without a review.

Every sentence with one of these words, on pages, in docstrings and in messages, is in the list beside this file, once
somebody has read it and found that a figure, a theorem or an attack bears it out, or that it denies or limits what it
names. A new sentence fails until it is read and added: `python -m tests.architecture.test_claims` writes the list anew.
Behind every sentence of a page and of the rooms that encrypt and audit stands in `claim_figures.txt` what bears it out:
a test (FILE::NAME), a page with the figure (PAGE), or `denied`, where it says that something is *not* hidden or safe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.modules import ROOT, modules
from tests.architecture.pages import pages
from tests.support.prose import said

REVIEWED = Path(__file__).with_name("reviewed_claims.txt")
FIGURES = Path(__file__).with_name("claim_figures.txt")
ROOMS = re.compile(r"src/crosshatch/(?:privacy|audit|protocol/encr|simulator/encr)")
CLAIM = re.compile(r"\b(?:hidden|private|secret|safe|protects|learns)\b", re.IGNORECASE)
# Hidden layers and units are parts of networks, pages in HTML hide elements, and some things are called by these words.
ELSEWHERE = re.compile(
    r"hidden (?:layers?|units?|sizes?|state)|model\.hidden|, hidden\)|>>> .*|<.*>|hidden = "
    r"|learns as fast|safe on disk|#who-learns-\S*"
    r"|private (?:keys?|randomness|set intersection)|(?:a|new|party's) secret\b(?! *:)",
    re.IGNORECASE,
)
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


def test_every_claim_has_its_figure() -> None:
    lines = FIGURES.read_text(encoding="utf-8").splitlines()
    figures = {claim: figure for claim, _, figure in (line.rpartition(" => ") for line in lines)}
    asked = [one for one in claims() if not one.startswith("src/") or ROOMS.match(one)]
    assert asked == list(figures), "give each its figure, or take it out"
    for claim, figure in figures.items():
        file, _, name = figure.partition("::")
        if figure != "denied":
            text = (ROOT / file).read_text(encoding="utf-8")
            assert f"def {name}(" in text if name else re.search(r"\d\.\d", text), claim


def test_rule_finds_claims() -> None:
    text = "It is private.\n\nA hidden layer. `hidden`\n| labels | are safe |\nNobody learns it: a *secret*."
    assert list(sentences(text)) == ["It is private.", "are safe", "Nobody learns it: a *secret*."]


if __name__ == "__main__":
    REVIEWED.write_text("\n".join(claims()) + "\n", encoding="utf-8")
