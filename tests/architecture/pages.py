"""Fenced blocks of Markdown pages, and what the comment before each asks for.

A block is preceded, with nothing but blank lines between, by nothing or by one of

    <!-- not run: the reason -->        the block is shown only
    <!-- file: credit.toml -->          the block is first written to that file, in the page's temporary folder
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<language>[^`]*)$")
COMMENT = re.compile(r"^\s*<!--\s*(?P<key>not run|file):\s*(?P<value>.*?)\s*-->\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line its text starts at, and the comment before it."""

    language: str
    text: str
    line: int
    not_run: str | None = None  # the reason
    file: str | None = None


def pages(root: Path) -> list[Path]:
    """README.md and all pages below docs/, as far as they exist."""
    docs = [page for page in sorted((root / "docs").rglob("*.md")) if "_build" not in page.parts]
    return [page for page in [root / "README.md", *docs] if page.is_file()]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order.

    >>> blocks("<!-- not run: slow -->\\n```python\\nf()\\n```")
    [Block(language='python', text='f()\\n', line=3, not_run='slow', file=None)]
    """
    found: list[Block] = []
    lines = text.splitlines()
    comment: dict[str, str] = {}
    at = 0
    while at < len(lines):
        opened = FENCE.match(lines[at])
        if opened:
            end = at + 1
            while end < len(lines) and not _closes(lines[end], opened["fence"]):
                end += 1
            body = textwrap.dedent("".join(f"{line}\n" for line in lines[at + 1 : end]))
            language = (opened["language"].split() or [""])[0]
            found.append(Block(language, body, at + 2, comment.get("not run"), comment.get("file")))
            comment, at = {}, end
        elif said := COMMENT.match(lines[at]):
            comment = {**comment, said["key"]: said["value"]}
        elif lines[at].strip():
            comment = {}
        at += 1
    return found


def _closes(line: str, fence: str) -> bool:
    text = line.strip()
    return len(text) >= len(fence) and set(text) == {fence[0]}


def commands(text: str) -> list[str]:
    """The `crosshatch` commands of a console block; `\\` at a line's end joins it with the next, output is left out.

    >>> commands("$ crosshatch train a.toml \\\\\\n    --quiet\\ndone\\n$ make demo\\n")
    ['crosshatch train a.toml     --quiet']
    """
    joined = text.replace("\\\n", "").splitlines()
    stripped = [line.strip().removeprefix("$ ").strip() for line in joined]
    return [line for line in stripped if line == "crosshatch" or line.startswith("crosshatch ")]
