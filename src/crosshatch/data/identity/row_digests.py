"""Rows by themselves, to notice that two sets overlap."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import polars as pl

from crosshatch.data.dataset import Samples
from crosshatch.data.identity.keyed_digest import as_text
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.row_ids import RowIds


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
