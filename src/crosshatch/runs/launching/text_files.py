"""The files of own parts in a party's folder, and what all parties must have in common."""

import inspect
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from crosshatch.runs.config import read_config
from crosshatch.runs.launching.own_rows import ABOUT
from crosshatch.runs.launching.process_plan import CONFIG
from crosshatch.runs.own_parts.part_files import PARTS, PartFiles, files_named
from crosshatch.runs.trained.used_versions import versions
from crosshatch.runtime.store import write_whole

_SHOWN = 16  # characters of a digest


def write_parts(home: Path, files: PartFiles, config: str, *, blocks: bool) -> None:
    """Copies of the files that a config names; those of blocks alone where blocks are loaded."""
    common = _common(tomllib.loads(config), home)
    for name, content in files.contents.items():
        if blocks or home / PARTS / name in common:
            (home / PARTS).mkdir(mode=0o700, exist_ok=True)
            write_whole(home / PARTS / name, content)


def what_is_agreed(home: Path, rounds: int) -> dict[str, str]:
    """What a folder and this process have that must be the same at every party, by its name: digests and versions.

    `federation` is the config and what is known to all, `text` the file of the algorithm and those of own parts.
    """
    config = (home / CONFIG).read_bytes()
    algorithm = inspect.getsourcefile(type(read_config(home / CONFIG).algorithm))
    named = [*([] if algorithm is None else [Path(algorithm)]), *sorted(_common(tomllib.loads(config.decode()), home))]
    files = [(path.name, sha256(path.read_bytes()).hexdigest()) for path in named]
    return {
        "federation": _digest((config, (home / ABOUT).read_bytes(), rounds)),
        "text": _digest(files),
        **versions(),
    }


def _digest(what: object) -> str:
    return sha256(repr(what).encode()).hexdigest()[:_SHOWN]


def _common(tables: Mapping[str, Any], home: Path) -> set[Path]:
    """The files of own parts that every party has: all but those that are of blocks alone."""
    model = {key: one for key, one in tables.get("model", {}).items() if key not in ("block", "blocks")}
    return {home / PARTS / path.name for path in files_named({**tables, "model": model})}
