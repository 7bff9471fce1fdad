"""No file that is kept names a place on the machine it was written on."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.architecture.modules import ROOT

# An absolute path into somebody's machine; not a URL, nor a folder of the project such as docs/tmp/.
MACHINE_PATH = re.compile(r"(?<![\w.~})/-])/(work|tmp|root|home|Users|opt|mnt)/")


def kept_files() -> list[str]:
    """Paths of the files git keeps, relative to the root."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: which files are kept is unknown")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_machine_paths() -> None:
    found = []
    for name in kept_files():
        content = (ROOT / name).read_bytes()
        if b"\0" in content:
            continue  # a picture or an archive
        for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
            if MACHINE_PATH.search(line):
                found.append(f"{name}:{number}: {line.strip()[:120]}")
    assert found == []


@pytest.mark.parametrize("folder", ["work", "tmp", "home"])
def test_rule_catches(folder: str) -> None:
    assert MACHINE_PATH.search(f'open("/{folder}/data.csv")')


@pytest.mark.parametrize("text", ["https://example.org/home/page", "docs/tmp/page.md", "$HOME/work/x", "a/work/b"])
def test_rule_allows(text: str) -> None:
    assert not MACHINE_PATH.search(text)
