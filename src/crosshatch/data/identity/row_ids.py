"""Ids of rows, the same whether a file has them as numbers or as text, and keyed digests of columns.

Digests are equal where the values are, whatever the file format they were read from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from crosshatch.data.dataset import Array, Indices, Samples
from crosshatch.data.identity.owner_key import OwnerKey

Column: TypeAlias = pl.Series | Array
"""One value per row (n,), or an array (n, ...) of numbers."""
CHUNK = 1 << 20  # numbers that are copied at once
_WHOLE = r"^(0|-?[1-9]\d{0,17})$"


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


@dataclass(frozen=True)
class RowIds:
    """Ids (n,) as whole numbers wherever they are written as such, else as text, and once more as numpy sorts it.

    >>> RowIds.of([np.array(["7", "10"])]).numbers
    array([ 7, 10])
    """

    numbers: Array | None
    texts: pl.Series | None = None
    to_sort: Array | None = None

    @staticmethod
    def of(parts: Sequence[Array]) -> RowIds:
        if all(part.dtype.kind in "iu" for part in parts):
            return RowIds(np.concatenate([part.astype(np.int64) for part in parts]))
        texts = as_text([part if part.dtype.kind in "biufU" else part.astype(np.str_) for part in parts])
        if texts.str.contains(_WHOLE).all():
            return RowIds(texts.cast(pl.Int64).to_numpy())
        return RowIds(None, texts, np.concatenate([part.astype(np.str_) for part in parts]))

    def __len__(self) -> int:
        return len(self.numbers if self.numbers is not None else self.as_text)

    @property
    def as_text(self) -> pl.Series:
        if self.numbers is not None:
            return as_text([self.numbers])
        assert self.texts is not None
        return self.texts

    @cached_property
    def ascending(self) -> Indices:
        """Positions by ascending id; equal ones in the order in which they stand."""
        values = self.to_sort if self.numbers is None else self.numbers
        assert values is not None
        return np.asarray(np.argsort(values, kind="stable"))

    def bytes(self, order: Indices) -> list[bytes]:
        """Those at these positions, without loss."""
        if self.numbers is not None:
            return [b"whole", self.numbers[order].astype("<i8").tobytes()]
        return [b"text", *text_bytes(self.as_text.gather(order))]


def row_digests(samples: Samples, key: OwnerKey) -> npt.NDArray[np.uint64]:
    """A keyed digest (n,) of each row by itself, to find rows that two sets have in common.

    It is of the row's id, or of all its values where there are no ids; never of its label.

    >>> rows, key = Samples(np.zeros((3, 1)), np.zeros(3), ids=np.array([7, 8, 9])), OwnerKey(bytes(32))
    >>> first, second = row_digests(rows, key), row_digests(rows.take(np.array([2])), key)
    >>> np.isin(first, second).tolist()
    [False, False, True]
    """
    if samples.ids is not None:
        contents = RowIds.of([samples.ids]).as_text.to_list()
    elif isinstance(samples.x, pl.DataFrame):
        texts = pl.DataFrame(
            [as_text([one.cast(pl.Float64) if one.dtype.is_numeric() else one]).alias(one.name) for one in samples.x]
        )
        contents = texts.select(pl.concat_str(pl.all().fill_null("\0"), separator="\x1f")).to_series().to_list()
    else:
        contents = [row.tobytes() for row in (samples.x.reshape(len(samples), -1).astype(np.float64) + 0.0)]
    found = (
        blake2b(one.encode() if isinstance(one, str) else one, key=key.secret, digest_size=8, person=b"row")
        for one in contents
    )
    return np.frombuffer(b"".join(one.digest() for one in found), dtype="<u8")
