"""The sets a data folder may hold, as `known_sets.toml` lists them: which of them are there, their rows, and whether
their arrays are what the sets' makers published.
"""

import hashlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from crosshatch.data.dataset import Array, Raw
from crosshatch.data.public_sets.builtin import BUILTIN, load_builtin
from crosshatch.data.public_sets.in_folder import locate, names_in, open_set
from crosshatch.data.public_sets.nus_wide import NUS_WIDE, read_nus_wide
from crosshatch.data.reading.archive import read_archive
from crosshatch.errors import DataError, one_line
from crosshatch.partition.features import unknown

Arrays = Mapping[str, Array]


class ArchiveCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a `rule` must find in an `array`, or in some of its columns or its `first` rows."""

    rule: str
    array: str
    expected: str
    columns: tuple[str, ...] = ()
    first: int | None = None
    scale: float = 1.0
    tolerance: float = 0.0


@dataclass(frozen=True)
class Finding:
    """The outcome of a check."""

    check: str
    ok: bool
    found: str


def run_check(check: ArchiveCheck, arrays: Arrays) -> Finding:
    """Whether what is found reads as expected; an absent array is a failed check."""
    text = f"{check.rule} of {check.array} {' '.join(check.columns)}".strip()
    try:
        found = _RULES[check.rule](check, arrays)
    except KeyError as error:
        return Finding(text, False, f"no array {error}")
    except (IndexError, ValueError, TypeError) as error:
        return Finding(text, False, one_line(error))
    return Finding(text, found == check.expected, found)


def _values(check: ArchiveCheck, arrays: Arrays) -> Array:
    values = arrays[check.array][: check.first]
    if not check.columns:
        return values
    names = arrays["static_names" if check.array.startswith("static") else "feature_names"].tolist()
    return values[:, [names.index(column) for column in check.columns]]


def _span(check: ArchiveCheck, arrays: Arrays) -> str:
    values = _values(check, arrays)
    return f"{np.nanmin(values):g}..{np.nanmax(values):g}"


def _moments(check: ArchiveCheck, arrays: Arrays) -> str:
    """Mean, or mean and standard deviation, with as many digits as were published."""
    values, published = _values(check, arrays), check.expected.split()
    found = (values.mean(dtype=np.float64) / check.scale, values.std(dtype=np.float64) / check.scale)
    digits = len(published[0].partition(".")[2])
    return " ".join(f"{value:.{digits}f}" for value in found[: len(published)])


def _channels(check: ArchiveCheck, arrays: Arrays) -> str:
    """Channel means of images in [0, 1], to a tolerance, as a subset need not agree in all digits."""
    found = arrays[check.array].mean(axis=(0, 1, 2)) / 255
    near = bool((np.abs(found - np.array(check.expected.split(), float)) <= check.tolerance).all())
    return check.expected if near else " ".join(f"{value:.4f}" for value in found)


def _groups(check: ArchiveCheck, arrays: Arrays) -> str:
    names, found = np.unique(arrays[check.array], return_counts=True)
    return " ".join(f"{name} {size}" for name, size in sorted(zip(names.tolist(), found.tolist(), strict=True)))


def _idx_md5(check: ArchiveCheck, arrays: Arrays) -> str:
    """MD5 of the original idx file, which is a header and the same bytes."""
    array = arrays[check.array]
    header = struct.pack(f">{array.ndim + 1}i", 0x0800 + array.ndim, *array.shape)
    return hashlib.md5(header + array.tobytes(), usedforsecurity=False).hexdigest()


def _jpeg(check: ArchiveCheck, arrays: Arrays) -> str:
    """So many JPEG images lie end to end, each starting with the mark of one."""
    data, offsets = arrays[f"jpeg_{check.array}"], arrays[f"offset_{check.array}"]
    starts = offsets[:-1]
    good = (np.diff(offsets) > 2) & (data[starts] == 0xFF) & (data[starts + 1] == 0xD8)
    return f"{int(good.sum())} images" if offsets[-1] == len(data) else "an end that does not fit"


_RULES: dict[str, Callable[[ArchiveCheck, Arrays], str]] = {
    "shape": lambda check, arrays: " x ".join(map(str, arrays[check.array].shape)),
    "counts": lambda check, arrays: " ".join(map(str, np.unique(_values(check, arrays), return_counts=True)[1])),
    "complete": lambda check, arrays: str(int(np.isnan(arrays[check.array]).sum())),
    "distinct": lambda check, arrays: str(len(np.unique(arrays[check.array]))),
    "span": _span,
    "moments": _moments,
    "channels": _channels,
    "groups": _groups,
    "idx_md5": _idx_md5,
    "jpeg": _jpeg,
}


class PublicSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A public set. `get` says where it is and which arrays to save as NAME.npz."""

    licence: str
    shape: str
    get: str
    checks: tuple[ArchiveCheck, ...] = ()
    train_rows: int | None = None
    split_by: str | None = None


KNOWN = msgspec.toml.decode(Path(__file__).with_name("known_sets.toml").read_bytes(), type=dict[str, PublicSet])


@dataclass(frozen=True)
class DatasetLine:
    """A line of `crosshatch datasets`; `passed` of `checks` succeeded, both 0 where nothing can be checked."""

    name: str
    licence: str
    shape: str
    present: bool
    passed: int
    checks: int
    get: str


def check(name: str, folder: Path) -> list[Finding]:
    """Every check of a known set on the file in the folder."""
    if name not in KNOWN:
        raise DataError(str(unknown("data set", name, list(KNOWN), f"folder {folder}")))
    if not KNOWN[name].checks:
        return []  # large text files that are read once, in training
    archive = open_set(locate(folder, name))
    arrays = {key: archive[key] for key in archive}  # read once; most arrays serve several checks
    return [run_check(one, arrays) for one in KNOWN[name].checks]


def rows(folder: Path | None) -> list[DatasetLine]:
    """Built-in sets, known sets, and whatever else the folder holds."""
    listed = [DatasetLine(name, licence, size, True, 0, 0, source) for name, (licence, size, source) in BUILTIN.items()]
    for name, known in KNOWN.items():
        present = folder is not None and locate(folder, name).is_file()
        findings: list[Finding] = []
        if present:
            assert folder is not None
            try:
                findings = check(name, folder)
            except DataError as error:
                findings = [Finding("the file is readable", False, str(error))]
        passed = sum(finding.ok for finding in findings)
        listed.append(DatasetLine(name, known.licence, known.shape, present, passed, len(findings), known.get))
    return listed + [
        DatasetLine(name, "unknown", _shape_of(folder, name), True, 0, 0, "your own file")
        for name in known_names(folder)
        if folder is not None and name not in KNOWN and name not in BUILTIN
    ]


def known_names(folder: Path | None) -> list[str]:
    """Everything that [data] may name: built in, known, or a file of the folder."""
    own = names_in(folder) if folder is not None else []
    return list(dict.fromkeys([*BUILTIN, *KNOWN, *own]))


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


def _shape_of(folder: Path, name: str) -> str:
    try:
        archive = open_set(locate(folder, name))
        return " x ".join(str(size) for size in archive["x_train" if "x_train" in archive else "x"].shape)
    except (DataError, KeyError):
        return "unreadable"
