"""Files and folders that pages for developers name exist, and users' pages leave the rooms to CONTRIBUTING."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.modules import ROOT
from tests.architecture.pages import pages

PACKAGE = ROOT / "src" / "crosshatch"
NAMED = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.(?:py|md|toml)|(?:[\w-]+/)+)(?![\w/])")
# Pages on which every file named is one of ours; elsewhere users' own files are named too.
STRICT = [
    "CONTRIBUTING.md", "docs/how-it-works.md", "docs/parties.md", "docs/recovery.md",
    *(str(path.relative_to(ROOT)) for path in sorted(PACKAGE.rglob("README.md"))),
]  # fmt: skip
MADE = {".venv/", "docs/_build/", "utils.py", "best_model/", "model/", "checkpoint/", "parts/", "config.toml"}


def named(text: str) -> set[str]:
    """Names of files and folders in a text, as paths or by themselves.

    >>> sorted(named("`local/solve.py` and `meter.py`, in `local/`; not H/V or 1/2 or e.g. x."))
    ['local/', 'local/solve.py', 'meter.py']
    """
    return {found for found in NAMED.findall(text) if found not in MADE}


def is_there(name: str) -> bool:
    """Whether a file or folder of the project ends with this path."""
    where = [ROOT, PACKAGE, ROOT / "docs"]
    if any((folder / name).exists() for folder in where):
        return True
    return any(PACKAGE.rglob(name.rstrip("/")))


@pytest.mark.parametrize("page", STRICT)
def test_named_files_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert sorted(name for name in named(text) if not is_there(name)) == [], f"{page}: these are not there"


def test_users_pages_name_modules_that_exist() -> None:
    wrong = [
        f"{page.relative_to(ROOT).as_posix()}: {name}"
        for page in pages(ROOT)
        for name in re.findall(r"`((?:src/)?crosshatch/[\w/]+(?:\.py)?)`", page.read_text(encoding="utf-8"))
        if not (PACKAGE.parent / name.removeprefix("src/")).exists()
    ]
    assert wrong == []


def test_rooms_are_for_developers() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    assert [name for name in named(text) if name.endswith(".py")] == []


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    assert not is_there("simulator/vertical/seen.py")
    assert not is_there(f"{tmp_path.name}/")
