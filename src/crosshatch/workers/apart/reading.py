"""A worker's side of it: its own rows, read from the files and prepared, each where it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from crosshatch.data.dataset import Indices
from crosshatch.data.encoding.encode_part import encode
from crosshatch.data.encoding.encode_table import TableEncoder
from crosshatch.workers.apart.row_files import RowFiles
from crosshatch.workers.shard import Rows


@dataclass(frozen=True)
class RowsToRead:
    """By silo and piece the numbers of rows in the files, in the order in which they shall lie."""

    files: RowFiles
    encoders: tuple[TableEncoder, ...]
    dtype: torch.dtype
    rows: Mapping[tuple[int, int], Indices]

    def read(self) -> Rows:
        """Reads every file once for each silo, a frame at a time."""
        found: dict[tuple[int, int], torch.Tensor] = {}
        for j, encoder in enumerate(self.encoders):
            found |= self._of_silo(j, encoder)
        return found

    def _of_silo(self, silo: int, encoder: TableEncoder) -> dict[tuple[int, int], torch.Tensor]:
        width, columns = len(encoder.features), [column.name for column in encoder.columns]
        keys = [key for key in self.rows if key[0] == silo]
        rooms = {key: torch.empty(len(self.rows[key]), width, dtype=self.dtype) for key in keys}
        orders = {key: np.argsort(self.rows[key], kind="stable").astype(np.int32) for key in keys}
        ascending = {key: self.rows[key][orders[key]] for key in keys}

        def places(low: int, high: int) -> list[tuple[tuple[int, int], int, int]]:
            edges = ((key, *np.searchsorted(ascending[key], (low, high)).tolist()) for key in keys)
            return [(key, a, b) for key, a, b in edges if b > a]

        for first, frame in self.files.frames(columns, lambda low, high: bool(places(low, high))):
            mine = places(first, first + len(frame))
            rows = np.concatenate([ascending[key][a:b] - first for key, a, b in mine])
            values, done = encode(encoder, frame[rows], str(self.files.paths[0])), 0
            for key, a, b in mine:
                rooms[key][torch.from_numpy(orders[key][a:b]).long()] = values[done : done + b - a].to(self.dtype)
                done += b - a
        return rooms
