"""Rows from where only workers read them: an npz archive, and a user's own loader from a Python file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from crosshatch.errors import DataError
from crosshatch.own_parts import PartKind, building, find_part, is_own

_LOADER = PartKind("a loader", "data.path", DataError, "function")
ARCHIVE = ".npz"


def is_stream(path: Path) -> bool:
    return is_own(str(path)) or path.suffix.lower() == ARCHIVE


def stream(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """Frames of so many rows, in one order whenever it is asked."""
    kept = pl.DataFrame()
    for frame in _own(str(path)) if is_own(str(path)) else _archive(path, rows):
        kept = frame if kept.is_empty() else pl.concat([kept, frame])
        while len(kept) >= rows:
            yield kept[:rows]
            kept = kept[rows:]
    if not kept.is_empty():
        yield kept


def _own(name: str) -> Iterator[pl.DataFrame]:
    """What a function without arguments yields: frames, or columns by name."""
    with building(name, _LOADER, done="read"):
        for found in find_part(name, _LOADER)():
            yield found if isinstance(found, pl.DataFrame) else pl.DataFrame(found)


def _archive(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """The rows of `x` (n, columns), called as `feature_names` says or x0, x1, ..., and `y` (n,)."""
    if not path.is_file():
        raise DataError(f"no file {path}: check the path (it is relative to the config file)")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            y, names = arrays["y"], arrays.get("feature_names")
        with zipfile.ZipFile(path) as file, file.open("x.npy") as x:
            version = np.lib.format.read_magic(x)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = header(x)
            if len(shape) != 2 or by_columns or y.shape != shape[:1]:
                raise ValueError(f"x is {shape} and y {y.shape}: (n, columns), row after row, and (n,) are needed")
            columns = [f"x{k}" for k in range(shape[1])] if names is None else names.astype(str).tolist()
            for low in range(0, shape[0], rows):
                count = min(rows, shape[0] - low)
                some = np.frombuffer(x.read(count * shape[1] * dtype.itemsize), dtype).reshape(count, shape[1])
                yield pl.DataFrame({name: some[:, k] for k, name in enumerate(columns)} | {"y": y[low : low + count]})
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} is not a readable npz archive with x and y: {error}") from None
