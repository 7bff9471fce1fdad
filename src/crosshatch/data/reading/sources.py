"""Where data comes from: whether sets are known and files are there. Says so before anything is read."""

from __future__ import annotations

from pathlib import Path

from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.data.reading.archive import locate
from crosshatch.data.reading.builtin import BUILTIN
from crosshatch.data.reading.catalogue import KNOWN, known_names
from crosshatch.errors import DataError
from crosshatch.partition.features import unknown

TABLES = (".csv", ".tsv", ".parquet")


def require_sources(data: DataSettings, federation: FederationSettings, folder: Path | None) -> None:
    """Refuse an absent data folder, an unknown set and absent files; what is in them is for those who read them."""
    if folder is not None and not folder.is_dir():
        raise DataError(f"no data folder {folder}: check --data or CROSSHATCH_DATA")
    paths = [data.path, data.test_path]
    if isinstance(federation.silos, tuple):
        paths += [path for silo in federation.silos for path in (silo.path, silo.test_path)]
    for path in paths:
        if path is not None:
            require_table(Path(path))
    if data.name is not None:
        require_named(data.name, folder)


def require_table(path: Path) -> None:
    """Refuse a file that by its name is not a table, or that is not there."""
    if path.suffix.lower() not in TABLES:
        raise DataError(f"{path}: unsupported kind of file '{path.suffix}': use .csv, .tsv or .parquet")
    if not path.is_file():
        raise DataError(f"no file {path}: check the path (it is relative to the config file)")


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
