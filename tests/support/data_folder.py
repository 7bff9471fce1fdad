"""Where the shared data sets are, and why a set there cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from crosshatch.data.public_sets.catalogue import check
from crosshatch.data.public_sets.in_folder import locate
from crosshatch.errors import DataError

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"


Need = Callable[[str], Path]


@cache
def why_not(folder: Path, name: str) -> str:
    """What keeps tests from using a set of this folder: people have files of their own in theirs, under any name."""
    if not locate(folder, name).is_file():
        return f"no {name} in {folder}"
    try:
        failed = [finding for finding in check(name, folder) if not finding.ok]
    except DataError as error:
        return str(error)
    return f"{name} in {folder} is not the published one: {failed[0].check}: {failed[0].found}" if failed else ""
