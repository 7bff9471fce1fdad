"""A set by its name, which is built in or in the data folder: whether it is there, and its rows."""

from dataclasses import replace
from pathlib import Path

from crosshatch.data.dataset import Raw
from crosshatch.data.public_sets.builtin import BUILTIN, load_builtin
from crosshatch.data.public_sets.catalogue import KNOWN, known_names
from crosshatch.data.public_sets.in_folder import locate, open_set
from crosshatch.data.public_sets.nus_wide import NUS_WIDE, read_nus_wide
from crosshatch.data.reading.archive import read_archive
from crosshatch.errors import DataError
from crosshatch.partition.features import unknown


def require_named(name: str, folder: Path | None) -> Path | None:
    """The file of a set in the data folder; None for one that is built in."""
    if name in BUILTIN:
        return None
    path = None if folder is None else locate(folder, name)
    if path is not None and path.is_file():
        return path
    if name in KNOWN:
        if folder is None:
            raise DataError(f"data '{name}' is read from a data folder: give it by --data or CROSSHATCH_DATA")
        raise DataError(f"no file {path}: {KNOWN[name].get}; or choose another folder by --data or CROSSHATCH_DATA")
    where = "data.name" if folder is None else f"data.name, folder {folder}"
    raise DataError(str(unknown("data set", name, known_names(folder), where)) + " (see `crosshatch datasets`)")


def read_named(name: str, folder: Path | None, positive: str | int | None = None) -> Raw:
    """All rows, those of a known set in its official order; `positive`: what labels are about, of many kinds."""
    path = require_named(name, folder)
    if path is None:
        return load_builtin(name)
    if name == NUS_WIDE:
        return read_nus_wide(path, positive)
    known = KNOWN.get(name)
    official = {} if known is None else {"train_rows": known.train_rows, "split_by": known.split_by}
    return replace(read_archive(path, open_set(path), name=name), **official)  # type: ignore[arg-type]
