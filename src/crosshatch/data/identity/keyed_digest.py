"""Keyed digests of columns: equal where the values are, whatever the file format they were read from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, Indices

Column: TypeAlias = pl.Series | Array
"""One value per row (n,), or an array (n, ...) of numbers."""

CHUNK = 1 << 20  # numbers that are copied at once


@dataclass(frozen=True, repr=False)
class Digester:
    """BLAKE2b with a key of 32 bytes: 128 bits in hexadecimal digits that nobody without the key can search for."""

    key: bytes

    def of(self, purpose: str, *contents: bytes | str) -> str:
        """The digest of some contents, each told apart from the next; `purpose` keeps kinds of digests apart."""
        digest = blake2b(key=self.key, digest_size=16)
        for content in (purpose, *contents):
            raw = content.encode() if isinstance(content, str) else content
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
        return digest.hexdigest()

    def of_column(self, purpose: str, parts: Sequence[Column], order: Indices) -> str:
        """The digest of the rows of all parts, one behind the other, in this order."""
        kind = kind_of(parts)
        shape = () if isinstance(parts[0], pl.Series) else parts[0].shape[1:]
        digest = blake2b(key=self.key, digest_size=16)
        digest.update(repr((purpose, kind, len(order), shape)).encode())
        for piece in text_bytes(as_text(parts).gather(order)) if kind == "text" else _numbers(parts, order):
            digest.update(piece)
        return digest.hexdigest()


def kind_of(parts: Sequence[Column]) -> str:
    """What a column holds: numbers, text, yes or no, or nothing at all."""
    series = [part for part in parts if isinstance(part, pl.Series)]
    if series and all(part.null_count() == len(part) for part in series):
        return "nothing"
    kinds = {_kind(part) for part in parts if not isinstance(part, pl.Series) or part.null_count() < len(part)}
    return kinds.pop() if len(kinds) == 1 else "numbers" if kinds == {"numbers", "yes or no"} else "text"


def _kind(part: Column) -> str:
    if isinstance(part, np.ndarray):
        return {"b": "yes or no", "i": "numbers", "u": "numbers", "f": "numbers"}.get(part.dtype.kind, "text")
    if part.dtype == pl.Boolean:
        return "yes or no"
    return "numbers" if part.dtype.is_numeric() else "text"


def _numbers(parts: Sequence[Column], order: Indices) -> Iterator[bytes]:
    """Rows as float64, some at a time, one NaN for whatever is missing and no negative zero."""
    # null becomes NaN
    arrays = [part if isinstance(part, np.ndarray) else np.asarray(part.cast(pl.Float64).to_numpy()) for part in parts]
    if arrays[0].ndim == 1:
        arrays = [np.concatenate(arrays)]
    starts = np.cumsum([0, *(len(array) for array in arrays)])
    at_once = max(1, CHUNK // max(1, int(np.prod(arrays[0].shape[1:]))))
    for first in range(0, len(order), at_once):
        rows = order[first : first + at_once]
        values = np.empty((len(rows), *arrays[0].shape[1:]))
        for array, start in zip(arrays, starts, strict=False):
            here = (rows >= start) & (rows < start + len(array))
            values[here] = array[rows[here] - start]
        values += 0.0
        values[np.isnan(values)] = np.nan
        yield values.tobytes()


def text_bytes(texts: pl.Series) -> Iterator[bytes]:
    """Which are missing, how long each is, and all of them behind one another."""
    yield np.packbits(texts.is_null().to_numpy()).tobytes()
    yield texts.str.len_bytes().fill_null(0).to_numpy().astype("<u8").tobytes()
    yield str(texts.str.join("").item()).encode()


def as_text(parts: Sequence[Column]) -> pl.Series:
    return pl.concat([_as_text(part) for part in parts])


def _as_text(part: Column) -> pl.Series:
    series = pl.Series("", part)
    if series.dtype.is_nested() or series.dtype == pl.Object:  # never trained on
        return pl.Series("", [str(value) for value in series.to_list()], dtype=pl.String)
    return series.cast(pl.String)
