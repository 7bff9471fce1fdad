"""Sets in a data folder: `NAME.npz` with `x_train, y_train, x_test, y_test` or `x, y`, never pickled objects."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.lib.npyio import NpzFile

from crosshatch.data.dataset import Array, Kind, NewRows, Raw, Samples
from crosshatch.data.notes import PLAIN, Note
from crosshatch.errors import DataError, one_line

# How the dimensions behind the samples are ordered, the first by default.
_AXES = ("time,columns", "columns,time")
_MUCH_SHORTER = 4  # so many times as many columns as points in time are more likely channels


class Archive(Mapping[str, Array]):
    """The arrays of an npz file, read when asked for; anything wrong with the file is a `DataError`."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise DataError(f"no file {path}: see `crosshatch datasets` for how to get it, or check --data")
        self.path = path
        with self._open() as file:
            self._names = tuple(file.files)

    @contextmanager
    def _open(self) -> Iterator[NpzFile]:
        try:
            with self.path.open("rb") as stream:  # numpy does not close a file that turns out not to be an archive
                file = np.load(stream, allow_pickle=False)
                if not isinstance(file, NpzFile):
                    raise ValueError("it holds a single array")
                yield file
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            # numpy takes for a pickle whatever it does not know, and says how to load that
            why = "" if "pickled (object) data" in str(error) else f": {one_line(error)}"
            raise DataError(f"{self.path} is not a readable npz archive{why}; get the file again") from error

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        with self._open() as file:
            array: Array = file[name]
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def read_archive(path: Path, arrays: Mapping[str, Array] | None = None, *, name: str | None = None) -> Raw:
    """Any archive laid out like the known ones, or `arrays` read from elsewhere; its dimensions say what it holds.

    `x` of 2 dimensions is a table, 3 dimensions of integers or 4 are images, 3 dimensions of floats are a sequence,
    (n, time, columns) unless `axes` says otherwise.
    """
    arrays = Archive(path) if arrays is None else arrays
    name = path.stem if name is None else name
    suffix = "_train" if "x_train" in arrays or "jpeg_train" in arrays else ""
    x = _pixels_or_numbers(arrays, suffix, path)
    kind = _kind(x, path)
    columns = _names(arrays, "feature_names", x.shape[-1], path) if kind != "image" else ()
    groups = tuple(arrays["feature_group"].astype(str).tolist()) if "feature_group" in arrays and columns else ()
    if groups and len(groups) != len(columns):
        raise DataError(f"{path}: feature_group names {len(groups)} columns of {len(columns)}: name every one")
    train = _samples(arrays, suffix, x, kind, columns, path)
    test = None
    if suffix and ("x_test" in arrays or "jpeg_test" in arrays):
        x_test = _pixels_or_numbers(arrays, "_test", path)
        if x_test.shape[1:] != x.shape[1:]:
            raise DataError(
                f"{path}: x_train is {x.shape} but x_test {x_test.shape}: all but the first number must agree"
            )
        test = _samples(arrays, "_test", x_test, kind, columns, path)
    left = len(arrays["y_val"]) if "y_val" in arrays else 0
    notes = (Note("not used", PLAIN, "", f"{left} validation samples of {name} are not used"),) if left else ()
    return Raw(name, kind, train, test, columns, groups, notes=notes)


def read_unlabelled(path: Path) -> NewRows:
    """The rows of an archive to be scored: `x`, or else `x_test`, with `id` and `static` where it has them."""
    arrays = Archive(path)
    suffix = "_test" if not {"x", "jpeg"}.intersection(arrays) else ""
    if not {f"x{suffix}", f"jpeg{suffix}"}.intersection(arrays):
        raise DataError(f"{path} has no features: expected an array 'x' (or 'x_test'), it has {', '.join(arrays)}")
    x = _pixels_or_numbers(arrays, suffix, path)
    kind = _kind(x, path)
    if not len(x):
        raise DataError(f"{path} has no rows: 'x{suffix}' is {x.shape}")
    named = kind != "image" and "feature_names" in arrays
    static, ids = None, arrays.get(f"id{suffix}")
    if f"static{suffix}" in arrays:
        values = arrays[f"static{suffix}"]
        static = _frame(values, _names(arrays, "static_names", values.shape[-1], path))
    if (ids is not None and ids.shape != (len(x),)) or (static is not None and len(static) != len(x)):
        raise DataError(f"{path}: 'id{suffix}' and 'static{suffix}' must have one row for each of the {len(x)} of x")
    columns = _names(arrays, "feature_names", x.shape[-1], path) if named else ()
    return NewRows(str(path), x, columns, static, ids)


def _samples(
    arrays: Mapping[str, Array], suffix: str, x: Array, kind: Kind, columns: tuple[str, ...], path: Path
) -> Samples:
    if f"y{suffix}" not in arrays:
        raise DataError(f"{path} has no labels: expected an array 'y{suffix}'")
    y = arrays[f"y{suffix}"]
    if y.shape != (len(x),):
        raise DataError(f"{path}: y{suffix} is {y.shape} for {len(x)} samples: one label per sample is needed")
    extra: dict[str, Array | pl.DataFrame] = {}
    if f"static{suffix}" in arrays:
        static = arrays[f"static{suffix}"]
        names = _names(arrays, "static_names", static.shape[-1], path)
        extra["static"] = _frame(static, names)
    # One value per sample, for example the recording it was cut from: good for splitting, not a feature.
    known = {f"{stem}{suffix}" for stem in ("x", "y", "static", "id", "jpeg", "offset")}
    for name in arrays:
        stem = name.removesuffix(suffix)
        if name not in known and name.endswith(suffix) and not name.endswith(("_names", "_group", "_val")):
            values = arrays[name]
            if values.shape == (len(x),):
                extra[stem] = values
    return Samples(_frame(x, columns) if kind == "table" else x, y, arrays.get(f"id{suffix}"), extra)


def _pixels_or_numbers(arrays: Mapping[str, Array], suffix: str, path: Path) -> Array:
    if f"x{suffix}" in arrays:
        x = arrays[f"x{suffix}"]
        return _in_time_order(x, arrays, path) if x.ndim == 3 and x.dtype.kind == "f" else x
    if f"jpeg{suffix}" in arrays and f"offset{suffix}" in arrays:
        return _decode(arrays[f"jpeg{suffix}"], arrays[f"offset{suffix}"], path)
    raise DataError(f"{path} has no features: expected an array 'x_train' or 'x'")


def _in_time_order(x: Array, arrays: Mapping[str, Array], path: Path) -> Array:
    """Sequences as (n, time, columns): as `axes` says, else as names of columns tell, else where there is no doubt."""
    if "axes" in arrays:
        axes = str(arrays["axes"])
        if axes not in _AXES:
            raise DataError(f"{path}: axes is '{axes}': give {' or '.join(repr(one) for one in _AXES)}")
        return x if axes == _AXES[0] else np.swapaxes(x, 1, 2)
    middle, last = x.shape[1:]
    names = len(arrays["feature_names"]) if "feature_names" in arrays else None
    if names == last != middle:
        return x
    if names == middle != last or middle * _MUCH_SHORTER <= last:
        raise DataError(
            f"{path}: x is {x.shape}, sequences of {middle} points in time with {last} columns each, or of {last} "
            f"points in {middle} channels: say which by an array axes = '{_AXES[0]}' or '{_AXES[1]}' in the file"
        )
    return x


def _decode(data: Array, offsets: Array, path: Path) -> Array:
    """JPEG images laid end to end, image i in bytes offsets[i]..offsets[i+1]; all of one size (n, h, w, c)."""
    try:
        from PIL import Image
    except ImportError as error:
        raise DataError(
            f"{path} holds JPEG images and Pillow is not installed: run `pip install pillow`, or install crosshatch "
            "with its extra 'images'"
        ) from error
    pieces = (data[a:b].tobytes() for a, b in pairwise(offsets.tolist()))
    return np.stack([np.asarray(Image.open(io.BytesIO(piece))) for piece in pieces])


def _kind(x: Array, path: Path) -> Kind:
    if x.dtype.kind not in "biuf":
        raise DataError(f"{path}: x is of type {x.dtype}: numbers are needed (use a CSV or Parquet file for text)")
    if x.ndim == 2:
        return "table"
    if x.ndim == 4 or (x.ndim == 3 and x.dtype.kind in "iu"):
        return "image"
    if x.ndim == 3:
        return "sequence"
    raise DataError(f"{path}: x has {x.ndim} dimensions: 2 (table), 3 (images, sequences) or 4 (images) are known")


def _names(arrays: Mapping[str, Array], key: str, count: int, path: Path) -> tuple[str, ...]:
    if key not in arrays:
        return tuple(f"x{i}" for i in range(count))
    names = tuple(arrays[key].astype(str).tolist())
    if len(names) != count or len(set(names)) != count:
        raise DataError(f"{path}: {key} has {len(set(names))} different names for {count} columns: each needs its own")
    return names


def _frame(x: Array, columns: tuple[str, ...]) -> pl.DataFrame:
    return pl.DataFrame({name: np.ascontiguousarray(x[:, i]) for i, name in enumerate(columns)})
