"""What people give to be scored: files, tables or arrays, of one silo each or of all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, NewRows
from crosshatch.data.new_rows import as_in_training, is_known, read_rows
from crosshatch.data.reading.table_files import TABLES
from crosshatch.data.reading.tables import FileOfRows, ReadingRules
from crosshatch.data.text.layout_notes import said_of_layout
from crosshatch.data.text.text_format import find_format
from crosshatch.errors import DataError
from crosshatch.predict.joint_model import SiloPart

Source: TypeAlias = Path | str | pl.DataFrame | Array
"""A file, a table or an array."""
Sources: TypeAlias = Source | Sequence[Source] | Mapping[str, Source]


def read_sources(
    data: Sources, parts: Sequence[SiloPart], id_column: str | None
) -> tuple[dict[str, NewRows], list[NewRows]]:
    """Rows by the name of their silo, and those without one."""
    ids = _ids(parts, id_column)
    if isinstance(data, Mapping):
        own = {part.name: _asked([part], ids) for part in parts}
        known = {part.name: is_known(own[part.name], [(part.name, part.encoder)]) for part in parts}
        return {
            silo: _rows(source, own.get(silo, ReadingRules(ids=ids)), f"rows of '{silo}'", known=known.get(silo, False))
            for silo, source in data.items()
        }, []
    asked = _asked(parts, ids)
    known_all = is_known(asked, [(part.name, part.encoder) for part in parts])
    several = data if isinstance(data, list | tuple) else [cast(Source, data)]
    if not several:
        raise DataError("no rows are given: name a file, or leave data out for the run's own test rows")
    return {}, [
        _rows(source, asked, f"rows given as number {i + 1}", known=known_all) for i, source in enumerate(several)
    ]


def files_to_stream(
    data: Sources, parts: Sequence[SiloPart], id_column: str | None
) -> tuple[dict[str, FileOfRows], list[FileOfRows]] | None:
    """The same as files that can be scored as they are read; None where something has to be at hand as a whole."""
    ids = _ids(parts, id_column)
    if isinstance(data, Mapping):
        by_name = {part.name: part for part in parts}
        if not all(silo in by_name for silo in data):
            return None
        named = {silo: _file(source, [by_name[silo]], ids) for silo, source in data.items()}
        return None if None in named.values() else (cast(dict[str, FileOfRows], named), [])
    several = data if isinstance(data, list | tuple) else [cast(Source, data)]
    loose = [_file(source, parts, ids) for source in several]
    return None if None in loose or not loose else ({}, cast(list[FileOfRows], loose))


def said_of_files(data: Sources | None, parts: Sequence[SiloPart]) -> list[str]:
    """How files with new rows are written, where it is not plain and was guessed."""
    if data is None:
        return []
    several = data.values() if isinstance(data, Mapping) else data if isinstance(data, list | tuple) else [data]
    csv = _asked(parts, frozenset()).csv
    paths = [Path(one) for one in several if isinstance(one, Path | str)]
    texts = [path for path in paths if path.suffix.lower() in (".csv", ".tsv") and path.is_file()]
    return [str(note) for path in texts for note in said_of_layout(path, find_format(path, csv), csv)]


def _file(source: Source, parts: Sequence[SiloPart], ids: frozenset[str]) -> FileOfRows | None:
    if not isinstance(source, Path | str):
        return None
    file = FileOfRows(Path(source), _asked(parts, ids))
    if file.path.suffix.lower() not in TABLES or not file.path.is_file():
        return None
    needed = [(part.name, part.encoder) for part in parts]
    if not is_known(file.asked, needed) or ids & file.asked.readings.keys():
        return None
    return file if file.is_plain else None


def _ids(parts: Sequence[SiloPart], id_column: str | None) -> frozenset[str]:
    return frozenset(name for name in (id_column, *(part.id for part in parts)) if name is not None)


def _asked(parts: Sequence[SiloPart], ids: frozenset[str]) -> ReadingRules:
    return as_in_training(((part.name, part.encoder) for part in parts), ids)


def _rows(source: Source, asked: ReadingRules, place: str, *, known: bool) -> NewRows:
    if isinstance(source, Path | str):
        return read_rows(Path(source), asked, known=known)
    if not isinstance(source, pl.DataFrame | np.ndarray):
        raise DataError(
            f"{place} are of type {type(source).__name__}: give a file, a polars table (pl.from_pandas makes one) or a "
            "numpy array"
        )
    if isinstance(source, np.ndarray) and source.dtype.kind not in "biuf":
        raise DataError(f"{place} are an array of type {source.dtype}: give numbers, or a table for text")
    if not len(source):
        raise DataError(f"{place}: there are none, give at least one")
    return NewRows(place, source)
