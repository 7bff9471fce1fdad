"""A worker's side of it: its own rows, read from the files and prepared, each where it belongs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import torch

from crosshatch.data.dataset import Array, Indices
from crosshatch.data.encoding.encode_part import encode
from crosshatch.data.encoding.encode_table import TableEncoder
from crosshatch.workers.apart.row_files import RowFiles
from crosshatch.workers.division import next_places
from crosshatch.workers.shard import Rows


@dataclass(frozen=True)
class SiloToRead:
    """How a silo prepares its rows, whose each training sample is (n,), and where all lie, as `Division` says it."""

    encoder: TableEncoder
    owners: Indices
    first: Indices
    pieces_of: Indices
    edges: Indices


@dataclass(frozen=True)
class RowsToRead:
    """Where rows are: `training` marks by bits those of the training samples, `others` are the numbers of the rest.

    Training samples are numbered as their rows come in the files.
    """

    files: RowFiles
    dtype: torch.dtype
    training: Array
    others: Indices
    silos: tuple[SiloToRead, ...]

    def __call__(self, pieces: Collection[int]) -> Rows:
        """The rows of some pieces; every file is read once for each silo, a frame at a time."""
        found: dict[tuple[int, int], torch.Tensor] = {}
        for j, silo in enumerate(self.silos):
            found |= {(j, piece): rows for piece, rows in self._of_silo(silo, pieces).items()}
        return found

    def _of_silo(self, silo: SiloToRead, pieces: Collection[int]) -> dict[int, torch.Tensor]:
        edges, columns = silo.edges, [column.name for column in silo.encoder.columns]
        rooms = {
            piece: torch.empty(int(edges[piece + 1] - edges[piece]), len(silo.encoder.features), dtype=self.dtype)
            for piece in pieces
            if piece < len(edges) - 1
        }
        mine, free = np.isin(silo.pieces_of, list(pieces)), silo.first.copy()
        behind = len(silo.owners) + np.arange(len(self.others))
        behind = behind[np.isin(_piece(edges, behind), list(pieces))]
        behind = behind[np.argsort(self.others[behind - len(silo.owners)], kind="stable")]
        numbers = self.others[behind - len(silo.owners)]  # of my rows to be scored, ascending

        def trained(low: int, high: int) -> tuple[Indices, Indices]:
            """My training rows of those from `low` to `high`, and whose they are."""
            rows = low + np.flatnonzero(self._marked(low, high))
            before = self._count(low)
            owners = silo.owners[before : before + len(rows)]
            own = mine[owners]
            return rows[own], owners[own]

        def scored(low: int, high: int) -> slice:
            return slice(*np.searchsorted(numbers, (low, high)).tolist())

        def wanted(low: int, high: int) -> bool:
            return len(numbers[scored(low, high)]) > 0 or len(trained(low, high)[0]) > 0

        for first, frame in self.files.frames(columns, wanted):
            (rows, owners), others = trained(first, first + len(frame)), scored(first, first + len(frame))
            places = np.concatenate([next_places(owners, free), behind[others]])
            values = encode(
                silo.encoder, frame[np.concatenate([rows, numbers[others]]) - first], str(self.files.paths[0])
            )
            piece = _piece(edges, places)
            for one in np.unique(piece).tolist():
                at = np.flatnonzero(piece == one)
                rooms[one][torch.from_numpy(places[at] - edges[one])] = values[torch.from_numpy(at)].to(self.dtype)
        return rooms

    def _marked(self, low: int, high: int) -> Array:
        """Whether each row from `low` to `high` is one of a training sample."""
        begin = low // 8
        return np.unpackbits(self.training[begin : -(-high // 8)])[low - 8 * begin : high - 8 * begin]

    def _count(self, row: int) -> int:
        """How many training samples have rows before this one."""
        return int(np.bitwise_count(self.training[: row // 8]).sum()) + int(self._marked(row // 8 * 8, row).sum())


def _piece(edges: Indices, places: Indices) -> Indices:
    """The pieces in which places lie."""
    return np.searchsorted(edges, places, side="right") - 1
