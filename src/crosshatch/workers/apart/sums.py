"""Mean, deviation and categories of columns from sums over frames: each worker sums some frames, in any division.

Frames are fixed, and what was found is put together frame by frame in order: so the numbers do not depend on how many
workers there are. Of a single frame they are those that are fitted where all rows are at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import sqrt
from operator import add, itemgetter

import numpy as np
import polars as pl

from crosshatch.data.data_settings import Preparation
from crosshatch.data.dataset import Array
from crosshatch.data.encoding.encode_part import RawColumns
from crosshatch.data.encoding.encode_table import (
    MOST_CATEGORIES,
    CategoricalColumn,
    NumericColumn,
    TableEncoder,
    Usual,
    as_text,
    categorical_column,
    holds_categories,
    is_numeric,
    missing_values,
    numbers,
    numeric_column,
    sizes_of,
)
from crosshatch.data.reading.tables import BATCH
from crosshatch.workers.apart.row_files import RowFiles
from crosshatch.workers.crew import Crew


@dataclass(frozen=True)
class Moments:
    """Of some values: how many, their mean and their deviation.

    >>> Moments.of(np.array([1.0, 3.0])) + Moments.of(np.array([8.0]))
    Moments(count=3, mean=4.0, deviation=2.943920288775949)
    """

    count: int = 0
    mean: float = 0.0
    deviation: float = 0.0

    @staticmethod
    def of(values: Array) -> Moments:
        return Moments(len(values), float(np.mean(values)), float(np.std(values))) if len(values) else Moments()

    def __add__(self, other: Moments) -> Moments:
        if not other.count or not self.count:
            return other if other.count else self
        count, apart = self.count + other.count, other.mean - self.mean
        mean = self.mean + apart * other.count / count
        within = self.count * self.deviation**2 + other.count * other.deviation**2
        return Moments(count, mean, sqrt((within + apart * apart * self.count * other.count / count) / count))

    @property
    def varies(self) -> bool:
        """Not so for values that are all one, but for rounding."""
        return bool(self.deviation > 10 * np.finfo(np.float64).eps * abs(self.mean))


@dataclass(frozen=True)
class ColumnSums:
    """Of one column in some rows: numbers and their sizes, or categories; and how many are missing."""

    missing: int
    values: Moments = Moments()
    sizes: Moments = Moments()
    categories: frozenset[str] | None = None
    text: bool = False

    def __add__(self, other: ColumnSums) -> ColumnSums:
        categories = None
        if self.categories is not None and other.categories is not None:
            categories = self.categories | other.categories
            if len(categories) > MOST_CATEGORIES:  # refused anyway, with about so many
                categories = frozenset(sorted(categories)[: MOST_CATEGORIES + 1])
        return ColumnSums(
            self.missing + other.missing, self.values + other.values, self.sizes + other.sizes, categories,
            self.text or other.text,
        )  # fmt: skip

    def fitted(self, name: str, preparation: Preparation, place: str) -> NumericColumn | CategoricalColumn:
        """As `fit_table` does where all rows are at hand."""
        if self.categories is not None:
            return categorical_column(name, preparation, list(self.categories), self.missing, place, text=self.text)
        fill = None
        if preparation.impute != "none":
            fill = self.values.mean if preparation.impute == "mean" else 0.0
        elif self.missing:
            raise missing_values(name, self.missing, place)
        filled = self.values if fill is None else self.values + Moments(self.missing, fill)
        usual = None
        if self.values.count:
            size = self.sizes.mean if self.sizes.count else None
            deviation = self.values.deviation if self.values.varies else 0.0
            usual = Usual(self.values.mean, deviation, size, self.sizes.deviation)
        spread = filled.mean, filled.deviation if filled.varies else 1.0
        return numeric_column(name, preparation, fill, spread, usual, any_missing=self.missing > 0)


@dataclass(frozen=True)
class SumColumns:
    """What one worker is asked for: every `workers`-th frame, but training rows alone, which `training` marks."""

    files: RowFiles
    columns: tuple[str, ...]
    training: Array
    preparation: Preparation
    place: str
    worker: int
    workers: int

    def __call__(self) -> list[tuple[int, list[ColumnSums]]]:
        """By the number of its first row what was found in a frame."""
        rows = np.unpackbits(self.training).astype(bool)
        return [
            (first, [self._sums(series) for series in frame.filter(rows[first : first + len(frame)])])
            for first, frame in self.files.frames(self.columns, self._is_mine)
        ]

    def _is_mine(self, low: int, _: int) -> bool:
        return low // BATCH % self.workers == self.worker

    def _sums(self, series: pl.Series) -> ColumnSums:
        if holds_categories(series, self.preparation, self.place):
            texts = as_text(series, self.place)
            categories = frozenset(texts.drop_nulls().unique().to_list())
            return ColumnSums(texts.null_count(), categories=categories, text=not is_numeric(series, self.place))
        values = numbers(series, self.place)
        known = values[~np.isnan(values)]
        return ColumnSums(len(values) - len(known), Moments.of(known), Moments.of(sizes_of(known)))


def fit(crew: Crew, files: RowFiles, training: Array, part: RawColumns, preparation: Preparation) -> TableEncoder:
    """A silo's columns, fitted by sums over the workers; `training` marks rows of the files by bits."""
    of = files, part.columns, training, preparation, part.place
    asked = [SumColumns(*of, n, crew.count) for n in range(crew.count)]
    frames = sorted((frame for found in crew.do(asked) for frame in found), key=itemgetter(0))
    sums = [reduce(add, of_column) for of_column in zip(*(found for _, found in frames), strict=True)]
    return TableEncoder(
        tuple(one.fitted(name, preparation, part.place) for name, one in zip(part.columns, sums, strict=True)),
        dict(part.readings),
        part.csv,
    )
