"""The sets a data folder may hold, as `known_sets.toml` lists them, and which of them are there."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from crosshatch.data.public_sets.archive_checks import ArchiveCheck, Finding, run_check
from crosshatch.data.public_sets.builtin import BUILTIN
from crosshatch.data.public_sets.in_folder import locate, names_in, open_set
from crosshatch.errors import DataError
from crosshatch.partition.features import unknown


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


def _shape_of(folder: Path, name: str) -> str:
    try:
        archive = open_set(locate(folder, name))
        return " x ".join(str(size) for size in archive["x_train" if "x_train" in archive else "x"].shape)
    except (DataError, KeyError):
        return "unreadable"
