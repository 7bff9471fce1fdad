"""Ids of rows, the same whether a file has them as numbers or as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import polars as pl

from crosshatch.data.dataset import Array, Indices, Samples
from crosshatch.data.identity.keyed_digest import as_text, text_bytes
from crosshatch.data.identity.owner_key import OwnerKey

_WHOLE = r"^(0|-?[1-9]\d{0,17})$"


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
