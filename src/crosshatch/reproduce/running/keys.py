"""By what a run is known: its resolved config, its data, and the code that made it.

The name of a run and its threads play no part, nor the order in which anything was asked for. And where and with what
something was made: commit, machine, versions.
"""

import hashlib
import json
import os
import platform
import subprocess
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import crosshatch
from crosshatch.data.public_sets.builtin import BUILTIN
from crosshatch.data.public_sets.in_folder import locate
from crosshatch.runs.config import Config, encode_config

LENGTH = 16
# Rooms that decide no number of a run: a page that looks different shall not train anything again.
_BYSTANDERS = ("audit", "cli", "report", "reproduce", "studies", "sweeps", "testing")


@dataclass
class Keys:
    """Keys of runs that read from one data folder; every file is looked at once."""

    folder: Path | None
    _files: dict[str, str] = field(default_factory=dict)

    def of(self, config: Config) -> str:
        tables = encode_config(config)
        run = {key: value for key, value in tables["run"].items() if key not in ("name", "threads")}
        known = {"config": tables | {"run": run}, "data": self._data(config.data.name), "made by": code()}
        return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:LENGTH]

    def _data(self, name: str | None) -> str:
        """A digest of the file of a set; empty where it is made, or not there."""
        if name is None or name in BUILTIN or self.folder is None:
            return ""
        if name not in self._files:
            path, self._files[name] = locate(self.folder, name), ""
            if path.is_file():
                with open(path, "rb") as file:
                    self._files[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return self._files[name]


@cache
def code() -> dict[str, str]:
    """The versions that decide numbers, and a digest of the source: between two releases the version stays."""
    home = Path(crosshatch.__file__).parent
    found = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        place = path.relative_to(home)
        if place.parts[0] not in _BYSTANDERS:
            found.update(f"{place.as_posix()}\n".encode() + path.read_bytes())
    return {name: _version(name) for name in ("crosshatch", "torch")} | {"source": found.hexdigest()[:LENGTH]}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from the source without being installed
        return "unknown"


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
