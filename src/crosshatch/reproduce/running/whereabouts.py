"""Where and with what something was made: commit, machine, versions."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

from crosshatch.reproduce.running.keys import code

UNKNOWN = "unknown"


@cache
def commit() -> str:
    """Of the source this runs from, with a word where files differ from it; unknown where it is no checkout."""
    home = Path(__file__).parents[3]
    found = _git(home, "rev-parse", "HEAD")
    if not found:
        return UNKNOWN
    return f"{found} with changes" if _git(home, "status", "--porcelain", "--", ".") else found


def _git(home: Path, *words: str) -> str:
    try:
        ran = subprocess.run(["git", "-C", str(home), *words], capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.strip()


def machine() -> str:
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def versions() -> dict[str, str]:
    """Of what decides numbers."""
    return code() | {"python": platform.python_version()}
