"""Where sets are in a data folder: npz archives, and text files as their publishers lay them out."""

from collections.abc import Mapping
from pathlib import Path

from crosshatch.data.dataset import Array
from crosshatch.data.public_sets.challenge import FIRST, read_challenge
from crosshatch.data.public_sets.nus_wide import NUS_WIDE, nus_wide_in
from crosshatch.data.reading.archive import Archive


def locate(folder: Path, name: str) -> Path:
    """The file by which a set is read; it need not be there."""
    if name == NUS_WIDE:
        return nus_wide_in(folder)
    archive, text = folder / f"{name}.npz", folder / f"{name}{FIRST}"
    return text if text.is_file() and not archive.is_file() else archive


def names_in(folder: Path) -> list[str]:
    return sorted(
        {p.stem for p in folder.glob("*.npz")} | {p.name.removesuffix(FIRST) for p in folder.glob(f"*{FIRST}")}
    )


def open_set(path: Path) -> Mapping[str, Array]:
    return read_challenge(path) if path.name.endswith(FIRST) else Archive(path)
