"""Rows to be scored: which are whose, which of one silo belong to those of another, and a batch of them at a time.

Batches are of rows at hand, by their positions, or of files, as they are read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, Indices, NewRows
from crosshatch.data.new_rows import id_name, ids_of, part_of
from crosshatch.data.reading.tables import FileOfRows
from crosshatch.errors import DataError
from crosshatch.local.forward import BATCH_ROWS
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


class OutOfStepError(Exception):
    """The files cannot be scored as they are read: all of them have to be at hand."""


@dataclass(frozen=True)
class RowBatch:
    """Some rows: their `ids` (n,), and for each silo with columns the same rows, in the same order."""

    ids: Array
    given: tuple[GivenRows, ...]


def gathered(given: Sequence[GivenRows], aligned: Aligned) -> Iterator[RowBatch]:
    count = len(aligned.ids)
    for low in range(0, count, BATCH_ROWS):
        high = min(low + BATCH_ROWS, count)
        span = f", rows {low + 1:,} to {high:,} to be scored" if count > BATCH_ROWS else ""
        taken: dict[int, NewRows] = {}
        for one, positions in zip(given, aligned.positions, strict=True):
            if id(one.rows) not in taken:
                taken[id(one.rows)] = _take(one.rows, positions[low:high], one.rows.place + span)
        yield RowBatch(aligned.ids[low:high], tuple(GivenRows(taken[id(one.rows)], one.own) for one in given))


def _take(rows: NewRows, positions: Indices, place: str) -> NewRows:
    where: Indices | slice = positions
    if len(positions) and bool((np.diff(positions) == 1).all()):
        where = slice(int(positions[0]), int(positions[-1]) + 1)  # nothing is copied
    static = None if rows.static is None else rows.static[where]
    return replace(rows, place=place, x=rows.x[where], static=static, ids=None, source=rows.place)


def streamed(
    parts: Sequence[SiloPart],
    named: Mapping[str, FileOfRows],
    loose: Sequence[FileOfRows],
    *,
    id_column: str | None,
    rows: int = 2 * BATCH_ROWS,
) -> Iterator[RowBatch]:
    """Batches of files that are read side by side, about so many `rows` at a time, if all have the ids in one order.

    An OutOfStepError as soon as they have not, or where an id is missing, occurs twice or is not as it is written; what
    the batches before have been used for does not count then.
    """
    files = [*named.values(), *loose]
    courses = [_cut(file, rows) for file in files]
    started = 0
    of: list[int] = []
    names: list[str | None] = []
    hashes = []
    for pieces in zip_longest(*courses):
        if any(piece is None for piece in pieces):
            raise OutOfStepError  # one file is longer, or has no rows
        if not of:
            given = hand_out(parts, dict(zip(named, pieces, strict=False)), pieces[len(named) :])
            of = [next(i for i, piece in enumerate(pieces) if piece is one.rows) for one in given]
            known = id_names(parts, id_column)
            several = len(set(of)) > 1
            wanted = ([part.id, *known] if several and id_column is None and part.id else known for part in parts)
            names = [id_name(one.rows, columns) for one, columns in zip(given, wanted, strict=True)]
            if several and None in names:
                raise OutOfStepError
        placed = [replace(piece, place=piece.place + _span(started, piece), source=piece.place) for piece in pieces]
        batch = tuple(GivenRows(placed[i], own=part.name in named) for i, part in zip(of, parts, strict=True))
        if len({len(one.rows) for one in batch}) > 1:
            raise OutOfStepError
        texts = [_ids(one.rows, name) for one, name in zip(batch, names, strict=True) if name is not None]
        if not texts:
            yield RowBatch(np.arange(started + 1, started + 1 + len(batch[0].rows)), batch)
        else:
            if not all(texts[0].equals(text) for text in texts[1:]):
                raise OutOfStepError
            hashes.append(texts[0].hash().to_numpy())
            yield RowBatch(texts[0].to_numpy().astype(np.str_), batch)
        started += len(batch[0].rows)
    if not of or (hashes and len(np.unique(np.concatenate(hashes))) < started):
        raise OutOfStepError


def _cut(file: FileOfRows, rows: int) -> Iterator[NewRows]:
    """The rows of a file in frames of `BATCH_ROWS`, the last one shorter, however they are read."""
    held: list[pl.DataFrame] = []
    count = 0
    for frame in file.batches(rows):
        held.append(frame)
        count += frame.height
        if count < BATCH_ROWS:
            continue
        whole = pl.concat(held)
        for low in range(0, count - BATCH_ROWS + 1, BATCH_ROWS):
            yield NewRows(str(file.path), whole[low : low + BATCH_ROWS])
        held = [whole[count - count % BATCH_ROWS :]]
        count %= BATCH_ROWS
    if count:
        yield NewRows(str(file.path), pl.concat(held))


def _span(before: int, rows: NewRows) -> str:
    return f", rows {before + 1:,} to {before + len(rows):,}" if before or len(rows) == BATCH_ROWS else ""


def _ids(rows: NewRows, column: str) -> pl.Series:
    """Ids as they are written; where it is in doubt how they are meant, all of them have to be seen first."""
    assert isinstance(rows.x, pl.DataFrame)
    ids = rows.x[column]
    if not (ids.dtype.is_integer() or ids.dtype == pl.String) or ids.null_count():
        raise OutOfStepError
    texts = ids.cast(pl.String)
    if texts.str.ends_with(".0").any():
        raise OutOfStepError
    return texts.alias("id")
