"""The files of own parts in a party's folder, and the digest of all that parties must have in common."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from crosshatch.runs.launching.process_plan import CONFIG
from crosshatch.runs.launching.share import ABOUT
from crosshatch.runs.parts.part_files import PARTS, PartFiles
from crosshatch.runs.parts.part_names import files_named
from crosshatch.runs.trained.used_versions import versions
from crosshatch.runtime.store import write_whole


def write_parts(home: Path, files: PartFiles, config: str, *, blocks: bool) -> None:
    """Copies of the files that a config names; those of blocks alone where blocks are loaded."""
    common = _common(tomllib.loads(config), home)
    for name, content in files.contents.items():
        if blocks or home / PARTS / name in common:
            (home / PARTS).mkdir(mode=0o700, exist_ok=True)
            write_whole(home / PARTS / name, content)


def digest_of(home: Path, rounds: int) -> bytes:
    """Of what a folder has that every party of the run must have: config, what is known to all, the text, versions."""
    config = (home / CONFIG).read_bytes()
    named = sorted(_common(tomllib.loads(config.decode()), home))
    files = [(path.name, sha256(path.read_bytes()).hexdigest()) for path in named]
    common = (config, (home / ABOUT).read_bytes(), files, rounds, sorted(versions().items()))
    return sha256(repr(common).encode()).digest()


def _common(tables: Mapping[str, Any], home: Path) -> set[Path]:
    """The files of own parts that every party has: all but those that are of blocks alone."""
    model = {key: one for key, one in tables.get("model", {}).items() if key not in ("block", "blocks")}
    return {home / PARTS / path.name for path in files_named({**tables, "model": model})}
