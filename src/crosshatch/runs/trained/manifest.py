"""What an exported folder is made of: how its model came to be, and the hash of every file, so that none is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from crosshatch.errors import RunError
from crosshatch.predict.model_shape import Trained

MANIFEST = "manifest.json"
FORMAT = 1


class Manifest(msgspec.Struct, frozen=True):
    """`files` has the sha256 of each file, by its path in the folder; `silos` are those whose parts are there.

    `name` is that of the run, `finished` whether it ran to its end, `diverged` why its training ended badly, if so.
    """

    format: int
    name: str
    silos: tuple[str, ...]
    finished: bool
    diverged: str | None
    trained: Trained | None
    files: dict[str, str]

    @classmethod
    def hashing(cls, contents: Mapping[str, bytes], **known: object) -> Manifest:
        hashes = {name: sha256(content).hexdigest() for name, content in sorted(contents.items())}
        return msgspec.convert({"format": FORMAT, "files": hashes, **known}, cls)

    @property
    def own_code(self) -> dict[str, str]:
        """The files with code of a user's own, which loading the model runs, with their hashes."""
        return {name: known for name, known in self.files.items() if name.endswith(".py")}

    def require_whole(self, folder: Path) -> None:
        """Refuse a folder in which a file is absent or not as it was exported."""
        for name, known in self.files.items():
            file = folder / name
            try:
                content = file.read_bytes()
            except OSError as error:
                raise RunError(f"{file} cannot be read ({error.strerror}): get the folder again") from None
            if sha256(content).hexdigest() != known:
                raise RunError(
                    f"{file} is not as it was exported (its sha256 is not that in {MANIFEST}): get the folder again"
                )


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of an exported folder; None where the folder is another one, for example a run directory."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read ({error}): get the folder again, or export it again") from None
    if found.format != FORMAT:
        raise RunError(f"{path} is of format {found.format}, this version reads {FORMAT}: export the run again")
    return found
