"""A table in one file or several, read a frame at a time: no more than that is ever in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from crosshatch.data.reading.table_files import require_table
from crosshatch.data.reading.tables import BATCH, PARQUET, ReadingRules, table_batches
from crosshatch.errors import DataError, one_line
from crosshatch.workers.apart.streamed_rows import is_stream, stream

Wanted = Callable[[int, int], bool]
"""Whether a frame from one row up to another is asked for."""


@dataclass(frozen=True)
class RowFiles:
    """Files whose rows are numbered on from one to the next; `counts` are their rows, as they were when counted."""

    paths: tuple[Path, ...]
    rules: ReadingRules
    counts: tuple[int, ...] = ()

    def frames(self, columns: Sequence[str], wanted: Wanted = lambda *_: True) -> Iterator[tuple[int, pl.DataFrame]]:
        """The number of its first row with each frame; who wants few of a Parquet file reads few."""
        first = 0
        for i, path in enumerate(self.paths):
            begin = first
            for at, frame in self._of(path, list(columns), wanted, begin):
                if wanted(at, at + len(frame)):
                    yield at, frame
                first = max(first, at + len(frame))
            if self.counts:
                self._require_unchanged(i, first - begin if path.suffix.lower() != PARQUET else _height(path))
                first = begin + self.counts[i]

    def _of(self, path: Path, columns: list[str], wanted: Wanted, first: int) -> Iterator[tuple[int, pl.DataFrame]]:
        if not is_stream(path):
            require_table(path)
        try:
            if path.suffix.lower() != PARQUET:
                for frame in stream(path, BATCH) if is_stream(path) else table_batches(path, self.rules):
                    yield first, frame.select(columns)
                    first += len(frame)
                return
            rows, lazy = _height(path), pl.scan_parquet(path).select(columns)
            for low in range(0, rows, BATCH):
                if wanted(first + low, first + min(low + BATCH, rows)):
                    yield first + low, lazy.slice(low, BATCH).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(
                f"{path} is unreadable: {one_line(error)[:200]}; correct the file or save it again"
            ) from None

    def _require_unchanged(self, number: int, rows: int) -> None:
        if rows != self.counts[number]:
            raise DataError(
                f"{self.paths[number]} has {rows:,} rows here and {self.counts[number]:,} where the run was started: "
                "give every machine the same file"
            )


def _height(path: Path) -> int:
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())
