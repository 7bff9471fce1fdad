"""Small checks of an archive's arrays: what was found, and whether it is what the set's makers published."""

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosshatch.data.dataset import Array
from crosshatch.errors import one_line

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class ArchiveCheck:
    """One line of what to expect, and how to find out: `find(arrays)` gives what is there as text."""

    text: str
    expected: str
    find: Callable[[Arrays], str]


@dataclass(frozen=True)
class Finding:
    """The outcome of a check."""

    check: str
    ok: bool
    found: str


def run_check(check: ArchiveCheck, arrays: Arrays) -> Finding:
    """Whether what is found reads as expected; an absent array is a failed check."""
    try:
        found = check.find(arrays)
    except KeyError as error:
        return Finding(check.text, False, f"no array {error}")
    except (IndexError, ValueError, TypeError) as error:
        return Finding(check.text, False, one_line(error))
    return Finding(check.text, found == check.expected, found)


def shape(name: str, *sizes: int) -> ArchiveCheck:
    expected = " x ".join(str(size) for size in sizes)
    return ArchiveCheck(f"{name} is {expected}", expected, lambda a: " x ".join(str(size) for size in a[name].shape))


def counts(name: str, *numbers: int, rows: slice = slice(None)) -> ArchiveCheck:
    """How many rows each label has, in the order of the labels."""
    expected = " ".join(str(number) for number in numbers)
    where = "" if rows == slice(None) else f" in rows {rows.start or 0}..{rows.stop - 1}"

    def find(arrays: Arrays) -> str:
        return " ".join(str(number) for number in np.unique(arrays[name][rows], return_counts=True)[1].tolist())

    return ArchiveCheck(f"{name} has {expected} of each label{where}", expected, find)


def span(name: str, low: float, high: float, columns: Sequence[str] = ()) -> ArchiveCheck:
    """The smallest and the largest value that is there, of some columns or of all."""
    expected = f"{low:g}..{high:g}"
    which = f"{name} {'-'.join(columns[:: max(1, len(columns) - 1)])}".strip()

    def find(arrays: Arrays) -> str:
        values = _select(arrays, name, columns)
        return f"{np.nanmin(values):g}..{np.nanmax(values):g}"

    return ArchiveCheck(f"{which} is {expected}", expected, find)


def moments(name: str, *expected: float, digits: int, columns: Sequence[str] = (), scale: float = 1.0) -> ArchiveCheck:
    """Mean, or mean and standard deviation, rounded as they were published."""
    text = " ".join(f"{value:.{digits}f}" for value in expected)
    which = f"{name} {' '.join(columns)}".strip()

    def find(arrays: Arrays) -> str:
        values = _select(arrays, name, columns)
        found = [values.mean(dtype=np.float64) / scale, values.std(dtype=np.float64) / scale][: len(expected)]
        return " ".join(f"{value:.{digits}f}" for value in found)

    return ArchiveCheck(f"{which} has {'mean' if len(expected) == 1 else 'mean and deviation'} {text}", text, find)


def channels(names: Sequence[str], mean: Sequence[float], tolerance: float) -> ArchiveCheck:
    """Channel means of images in [0, 1], to a tolerance, as a subset need not agree in all digits."""
    text = " ".join(f"{value:.4f}" for value in mean)

    def find(arrays: Arrays) -> str:
        total = sum(len(arrays[name]) for name in names)
        found = sum(arrays[name].mean(axis=(0, 1, 2)) * (len(arrays[name]) / total) for name in names) / 255
        near = bool((np.abs(found - np.asarray(mean)) <= tolerance).all())
        return text if near else " ".join(f"{value:.4f}" for value in found)

    return ArchiveCheck(f"channel means are {text} to {tolerance:g}", text, find)


def complete(name: str) -> ArchiveCheck:
    return ArchiveCheck(f"{name} has no missing value", "0", lambda a: str(int(np.isnan(a[name]).sum())))


def groups(**sizes: int) -> ArchiveCheck:
    """How many columns each group has."""
    expected = " ".join(f"{name} {size}" for name, size in sorted(sizes.items()))

    def find(arrays: Arrays) -> str:
        names, found = np.unique(arrays["feature_group"], return_counts=True)
        return " ".join(f"{name} {size}" for name, size in sorted(zip(names.tolist(), found.tolist(), strict=True)))

    return ArchiveCheck(f"groups of columns: {expected}", expected, find)


def idx_md5(name: str, digest: str) -> ArchiveCheck:
    """MD5 of the original idx file, which is a header and the same bytes."""

    def find(arrays: Arrays) -> str:
        array = arrays[name]
        header = struct.pack(f">{array.ndim + 1}i", 0x0800 + array.ndim, *array.shape)
        return hashlib.md5(header + array.tobytes(), usedforsecurity=False).hexdigest()

    return ArchiveCheck(f"{name} as idx file has MD5 {digest[:8]}...", digest, find)


def jpeg(suffix: str, images: int) -> ArchiveCheck:
    """So many JPEG images lie end to end, each starting with the mark of one."""
    expected = f"{images} images"

    def find(arrays: Arrays) -> str:
        data, offsets = arrays[f"jpeg_{suffix}"], arrays[f"offset_{suffix}"]
        starts = offsets[:-1]
        good = (np.diff(offsets) > 2) & (data[starts] == 0xFF) & (data[starts + 1] == 0xD8)
        return f"{int(good.sum())} images" if offsets[-1] == len(data) else "an end that does not fit"

    return ArchiveCheck(f"jpeg_{suffix} holds {expected}", expected, find)


def distinct(name: str, number: int) -> ArchiveCheck:
    return ArchiveCheck(f"{name} has {number} different values", str(number), lambda a: str(len(np.unique(a[name]))))


def _select(arrays: Arrays, name: str, columns: Sequence[str]) -> Array:
    values = arrays[name]
    if not columns:
        return values
    names = arrays["feature_names"].tolist()
    return values[:, [names.index(column) for column in columns]]
