"""Where sets are in a data folder: npz archives, and text files as their publishers lay them out."""

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from crosshatch.data.dataset import Array
from crosshatch.data.public_sets import nus_wide
from crosshatch.data.reading.archive import Archive
from crosshatch.errors import DataError, one_line

FIRST = "_train.data"  # of the file by which such a set is found


def read_challenge(path: Path) -> dict[str, Array]:
    """The arrays of a set, as an npz archive would have them; `path` is its `NAME_train.data`."""
    found = _part(path, "_train")
    name = path.name.removesuffix(FIRST)
    valid = path.with_name(f"{name}_valid.data")
    return found | (_part(valid, "_test") if valid.is_file() else {})


def _part(path: Path, suffix: str) -> dict[str, Array]:
    labels = path.with_suffix(".labels")
    if not labels.is_file():
        raise DataError(f"no file {labels} beside {path.name}: put the labels there, one per line")
    x, y = _numbers(path), _numbers(labels)
    if y.shape != (len(x), 1):
        raise DataError(
            f"{labels} has {y.size} labels for the {len(x)} samples of {path.name}: each needs one, one per line"
        )
    return {f"x{suffix}": x, f"y{suffix}": y[:, 0].astype(np.int64)}


def _numbers(path: Path) -> Array:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # loadtxt warns of an empty file
            return np.loadtxt(path, dtype=np.float32, ndmin=2)
    except (OSError, ValueError, UserWarning) as error:
        raise DataError(
            f"{path} is not a text file of numbers with one sample per line: {one_line(error)}; get it again"
        ) from error


def locate(folder: Path, name: str) -> Path:
    """The file by which a set is read; it need not be there."""
    if name == nus_wide.NUS_WIDE:
        return folder / nus_wide.FIRST
    archive, text = folder / f"{name}.npz", folder / f"{name}{FIRST}"
    return text if text.is_file() and not archive.is_file() else archive


def names_in(folder: Path) -> list[str]:
    return sorted(
        {p.stem for p in folder.glob("*.npz")} | {p.name.removesuffix(FIRST) for p in folder.glob(f"*{FIRST}")}
    )


def open_set(path: Path) -> Mapping[str, Array]:
    return read_challenge(path) if path.name.endswith(FIRST) else Archive(path)
