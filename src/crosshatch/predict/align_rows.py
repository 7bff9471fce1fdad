"""Which rows are whose, and which rows of one silo belong to those of another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosshatch.data.dataset import Array, Indices, NewRows
from crosshatch.data.new_rows import ids_of, part_of
from crosshatch.errors import DataError
from crosshatch.predict.joint_model import SiloPart


@dataclass(frozen=True)
class GivenRows:
    """The rows that a silo's columns are in; `own`: those of no other silo are."""

    rows: NewRows
    own: bool


@dataclass(frozen=True)
class Aligned:
    """The `ids` (n,) to be scored, and for each silo where they stand among its rows; `left_out` ids not all have."""

    ids: Array
    positions: tuple[Indices, ...]
    left_out: int = 0


def hand_out(parts: Sequence[SiloPart], named: Mapping[str, NewRows], loose: Sequence[NewRows]) -> list[GivenRows]:
    """For each silo the rows given under its name, or else the only ones among the others that have its columns."""
    silos = [part.name for part in parts]
    if strange := [name for name in named if name not in silos]:
        raise DataError(f"'{strange[0]}' is not a silo of this model: its silos are {', '.join(silos)}")
    given = [_for_part(part, named, loose) for part in parts]
    for rows in loose:
        if not any(one.rows is rows for one in given):
            raise DataError(f"{rows.place} is of no use: every silo has its rows elsewhere, leave it out")
    return given


def _for_part(part: SiloPart, named: Mapping[str, NewRows], loose: Sequence[NewRows]) -> GivenRows:
    if part.name in named:
        return GivenRows(named[part.name], own=True)
    if not loose:
        raise DataError(f"no rows for silo '{part.name}': give its file too, as {part.name}=FILE")
    if len(loose) == 1:
        return GivenRows(loose[0], own=False)
    fitting = [rows for rows in loose if _has(rows, part)]
    if len(fitting) != 1:
        what = "none has all its columns" if not fitting else f"{fitting[0].place} and {fitting[1].place} could both be"
        raise DataError(
            f"which of the {len(loose)} files is that of silo '{part.name}' cannot be told, {what}: say so by "
            f"{part.name}=FILE"
        )
    return GivenRows(fitting[0], own=False)


def _has(rows: NewRows, part: SiloPart) -> bool:
    try:
        part_of(rows, part.encoder, part.name, own=False)
    except DataError:
        return False
    return True


def align(parts: Sequence[SiloPart], given: Sequence[GivenRows], *, id_column: str | None, common: bool) -> Aligned:
    """The rows of all silos joined on their ids, in the order of the first silo's; without `common` all must have all.

    Where all silos' columns are in one place nothing is joined, and rows without ids are numbered from 1.
    """
    names = id_names(parts, id_column)
    first = given[0].rows
    if all(one.rows is first for one in given):
        ids = ids_of(first, names)
        whole = np.arange(len(first))
        return Aligned(whole + 1 if ids is None else ids, (whole,) * len(parts))
    found = []
    for part, one in zip(parts, given, strict=True):
        own = ids_of(one.rows, [part.id, *names] if id_column is None and part.id is not None else names)
        if own is None:
            raise DataError(
                f"{one.rows.place} has no ids, and rows in several files are joined on them: name the id column by "
                "--id (in an archive, the array 'id')"
            )
        found.append(own)
    if len({ids.dtype.kind for ids in found}) > 1:
        found = [ids.astype(str) for ids in found]  # 17 in one file, "17" in another
    shared = np.logical_and.reduce([np.isin(found[0], ids) for ids in found[1:]])
    ids = found[0][shared]
    left_out = len(np.unique(np.concatenate(found))) - len(ids)
    if left_out and not common:
        raise _absent(given, found)
    if not len(ids):
        places = dict.fromkeys(one.rows.place for one in given)
        raise DataError(f"{', '.join(places)}: no id is in all files: check the id columns")
    positions = (np.argsort(one, kind="stable")[np.searchsorted(np.sort(one), ids)] for one in found)
    return Aligned(ids, tuple(positions), left_out)


def id_names(parts: Sequence[SiloPart], id_column: str | None) -> list[str]:
    """The columns that may hold ids: the one asked for, or those of the training."""
    return list(dict.fromkeys(part.id for part in parts if part.id is not None)) if id_column is None else [id_column]


def _absent(given: Sequence[GivenRows], found: Sequence[Array]) -> DataError:
    """The error for an id that one silo has and another has not."""
    for one, ids in zip(given, found, strict=True):
        for other, theirs in zip(given, found, strict=True):
            absent = np.setdiff1d(ids, theirs)
            if len(absent):
                return DataError(
                    f"id '{absent[0]}' of {one.rows.place} is not in {other.rows.place} ({len(absent)} such ids): a "
                    "score needs all silos, add the rows, or score the common ids alone (--common)"
                )
    raise AssertionError("nothing is absent")
