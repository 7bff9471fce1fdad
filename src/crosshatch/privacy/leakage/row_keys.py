"""Who rows are, so that the same ones are known again under another split, file or choice of columns."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowKeys:
    """Of every row a number by its id, by its place among all `labels` (a digest of these), and by its values.

    Two sets are compared by ids where both have them, by places where they are of the same labels, else by values.

    >>> first = RowKeys("labels", {"place": np.array([3, 4, 5], np.uint64), "values": np.zeros(3, np.uint64)})
    >>> first.take(np.array([2, 0])).places_in(first).tolist()
    [2, 0]
    """

    labels: str
    kinds: Mapping[str, Keys]  # each (n,)

    def __len__(self) -> int:
        return len(next(iter(self.kinds.values())))

    def take(self, rows: Ids) -> RowKeys:
        """Some of the rows, in this order."""
        return RowKeys(self.labels, {kind: keys[rows] for kind, keys in self.kinds.items()})

    def places_in(self, other: RowKeys) -> Ids:
        """Where each row stands in another set (n,); -1 where it is not there."""
        same = ("place",) if self.labels == other.labels else ()
        kind = next(kind for kind in ("id", *same, "values") if kind in self.kinds and kind in other.kinds)
        mine, theirs = self.kinds[kind], other.kinds[kind]
        if not len(theirs):
            return np.full(len(mine), -1, np.int64)
        order = np.argsort(theirs, kind="stable")
        found = order[np.searchsorted(theirs, mine, sorter=order).clip(max=len(theirs) - 1)]
        return np.where(theirs[found] == mine, found, -1).astype(np.int64)

    def digest(self, rows: Ids) -> str:
        """Of some of the rows as a set."""
        kind = next(kind for kind in ("id", "place", "values") if kind in self.kinds)
        scope = self.labels if kind == "place" else ""
        content = np.sort(self.kinds[kind][rows]).astype("<u8").tobytes()
        return blake2b(f"{kind} {scope} ".encode() + content, digest_size=16).hexdigest()

    def encode(self) -> dict[str, str]:
        return {kind: to_text(keys.astype("<u8")) for kind, keys in self.kinds.items()}

    @classmethod
    def decode(cls, labels: str, kinds: Mapping[str, str]) -> RowKeys:
        """From text; a ValueError where it is none of these."""
        found = cls(labels, {kind: from_text(text, "<u8").astype(np.uint64) for kind, text in kinds.items()})
        if not found.kinds or "values" not in found.kinds or len({len(keys) for keys in found.kinds.values()}) > 1:
            raise ValueError("rows without their keys")
        return found


def to_text(numbers: npt.NDArray[np.generic]) -> str:
    """The bytes of an array in base64."""
    return base64.b64encode(numbers.tobytes()).decode()


def from_text(text: str, kind: str) -> npt.NDArray[np.generic]:
    """The array again; a ValueError where it is none."""
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
    except binascii.Error as error:
        raise ValueError(str(error)) from None
