"""The files of a user's own parts as a run directory keeps them: copied, so that it is complete, and hashed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from crosshatch.errors import RunError
from crosshatch.runs.files import write_whole
from crosshatch.runs.parts.part_names import files_named, with_files

PARTS = "parts"
"""The folder of a run directory that the copies are in."""


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

    def in_run(self, tables: Mapping[str, Any]) -> dict[str, Any]:
        """The tables as a run directory has them: they name the copies."""
        return with_files(tables, self.copy_of)

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
