"""Where configs name files of a user's own parts, and how a run directory keeps them: copied, and hashed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from crosshatch.errors import RunError
from crosshatch.own_parts import moved, moved_in_text
from crosshatch.runs.files import write_whole

Change = Callable[[str], str]
_MANY = "*"
# A star stands for every key of a table, or every entry of a list.
_PLACES = (
    ("model", "block"),
    ("model", "blocks", _MANY, "block"),
    ("model", "loss"),
    ("algorithm", "name"),
    ("algorithm", "step_size", "kind"),
    ("codecs", _MANY),
    ("evaluate", "metrics", _MANY),
)
PARTS = "parts"
"""The folder of a run directory that the copies are in."""


def with_files(tables: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """The same tables with the path of every part's file changed; whatever else is wrong in them stays as it is.

    >>> with_files({"algorithm": {"name": "celu.py:Celu"}, "run": {"rounds": 3}}, lambda path: f"parts/{path}")
    {'algorithm': {'name': 'parts/celu.py:Celu'}, 'run': {'rounds': 3}}
    """
    changed: Any = tables
    for place in _PLACES:
        changed = _at(changed, place, change, text=place[0] == "codecs")
    return dict(changed)


def files_named(tables: Mapping[str, Any]) -> tuple[Path, ...]:
    found: dict[Path, None] = {}

    def note(path: str) -> str:
        found[Path(path).resolve()] = None
        return path

    with_files(tables, note)
    return tuple(found)


def started_from(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same tables with relative paths of parts' files starting in `folder`."""
    return with_files(tables, lambda path: str(folder / path))


def _at(value: Any, place: tuple[str, ...], change: Change, *, text: bool) -> Any:
    if not place:
        return (moved_in_text if text else moved)(value, change) if isinstance(value, str) else value
    key, rest = place[0], place[1:]
    if isinstance(value, Mapping):
        keys = value.keys() if key == _MANY else {key} & value.keys()
        return {**value, **{one: _at(value[one], rest, change, text=text) for one in keys}}
    if isinstance(value, list | tuple) and key == _MANY:
        return [_at(one, rest, change, text=text) for one in value]
    return value


@dataclass(frozen=True)
class PartFiles:
    """What the copies of these files are called; `contents` of each, once they are read."""

    names: Mapping[Path, str]
    contents: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, *configs: Mapping[str, Any]) -> PartFiles:
        """The files that the tables of configs name; of equal names all but the first are numbered."""
        names: dict[Path, str] = {}
        for file in dict.fromkeys(file for tables in configs for file in files_named(tables)):
            name, number = file.name, 1
            while name in names.values():
                number += 1
                name = f"{file.stem}-{number}{file.suffix}"
            names[file] = name
        return cls(names)

    def read(self) -> PartFiles:
        """The same with what is in the files now."""
        contents = {}
        for file, name in self.names.items():
            try:
                contents[name] = file.read_bytes()
            except OSError as error:
                raise RunError(f"the file {file} cannot be read ({error.strerror}): check its path") from None
        return PartFiles(self.names, contents)

    def write(self, folder: Path) -> None:
        """Keep the copies in a folder's `parts`, but those that are there."""
        for name, content in self.contents.items():
            (folder / PARTS).mkdir(exist_ok=True)
            if not (folder / PARTS / name).is_file():
                write_whole(folder / PARTS / name, content)

    @property
    def hashes(self) -> dict[str, str]:
        return {name: sha256(content).hexdigest() for name, content in self.contents.items()}

    def copy_of(self, path: str) -> str:
        """A file's copy, as seen from the run directory."""
        return f"{PARTS}/{self.names[Path(path).resolve()]}"

    def require_unchanged(self, before: Mapping[str, str], run: Path, what: str = "run") -> None:
        """Refuse a file that is not what it was when the run (or sweep) was started, by its hashes then."""
        for file, name in self.names.items():
            if name in before and self.hashes[name] != before[name]:
                kept = run / PARTS / name
                hint = "" if kept.resolve() == file else f" ({kept} is how it was)"
                raise RunError(
                    f"{file} was changed since the {what} in {run} was started: undo that{hint}, or choose another "
                    "--out"
                )


def require_hashes(run: Path, hashes: Mapping[str, str]) -> None:
    """Refuse copies in a run directory that are not what the model was trained with."""
    for name, known in hashes.items():
        file = run / PARTS / name
        if not file.is_file():
            raise RunError(f"no file {file}: get it from where the run was made, or train again")
        if sha256(file.read_bytes()).hexdigest() != known:
            raise RunError(f"{file} was changed since the run was made: put it back as it was, or train again")
