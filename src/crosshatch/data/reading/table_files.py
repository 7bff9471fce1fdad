"""Which files are tables, by their names."""

from pathlib import Path

from crosshatch.errors import DataError

TABLES = (".csv", ".tsv", ".parquet")


def require_table(path: Path) -> None:
    """Refuse a file that by its name is not a table, or that is not there."""
    if path.suffix.lower() not in TABLES:
        raise DataError(f"{path}: unsupported kind of file '{path.suffix}': use .csv, .tsv or .parquet")
    if not path.is_file():
        raise DataError(f"no file {path}: check the path (it is relative to the config file)")
