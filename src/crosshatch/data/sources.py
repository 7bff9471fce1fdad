"""Where data comes from: whether sets are known and files are there. Says so before anything is read."""

from pathlib import Path

from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.data.public_sets import catalogue
from crosshatch.data.reading.table_files import require_table
from crosshatch.errors import DataError
from crosshatch.own_parts import is_own

named_file = catalogue.require_named
read_named_set = catalogue.read_named


def require_sources(data: DataSettings, federation: FederationSettings, folder: Path | None) -> None:
    """Refuse an absent data folder, an unknown set and absent files; what is in them is for those who read them."""
    if folder is not None and not folder.is_dir():
        raise DataError(f"no data folder {folder}: check --data or CROSSHATCH_DATA")
    paths = [data.path, data.test_path]
    if isinstance(federation.silos, tuple):
        paths += [path for silo in federation.silos for path in (silo.path, silo.test_path)]
    for path in paths:
        if path is not None and not (Path(path).suffix == ".npz" or is_own(path)):  # for workers that read apart
            require_table(Path(path))
    if data.name is not None:
        named_file(data.name, folder)
