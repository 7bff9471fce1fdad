"""A data set before anybody divides it: samples in rows, with labels, names and groups of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crosshatch.data.data_settings import CsvSettings, Preparation
from crosshatch.data.looking.seen import FileSeen
from crosshatch.data.notes import Note

if TYPE_CHECKING:  # a party of a run has its numbers already, and needs no reader of tables
    import polars as pl

    from crosshatch.data.text.column_reading import ColumnReading

LARGEST = float(np.finfo(np.float32).max)
"""The largest value a column may have: single precision holds no more, and beyond 1e154 a deviation overflows."""

Array = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
Kind = Literal["table", "image", "sequence"]
Target = Literal["binary", "multiclass", "multilabel", "regression"]


@dataclass(frozen=True)
class Samples:
    """Some samples. `x` is a frame (table), (n, h, w[, c]) pixels (image) or (n, t, d) measurements (sequence).

    `extra` holds what belongs to a sample without being in `x`: one value per row (for example the recording a piece
    was cut from), or a further table a silo may hold (for example `static`, what does not change with time).
    `numbers` (n,) are the rows' places in their source, where that is known.
    """

    x: pl.DataFrame | Array
    y: Array
    ids: Array | None = None
    extra: Mapping[str, Array | pl.DataFrame] = field(default_factory=dict)
    numbers: Indices | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Indices) -> Samples:
        return Samples(
            x=self.x[rows],
            y=self.y[rows],
            ids=None if self.ids is None else self.ids[rows],
            extra={name: values[rows] for name, values in self.extra.items()},
            numbers=None if self.numbers is None else self.numbers[rows],
        )


@dataclass(frozen=True)
class NewRows:
    """Rows to be scored, without labels; `place` says in errors where they are from.

    `x` as in `Samples`, or (n, d) numbers. `columns` are the names of an array's last dimension, if it has any.
    `static` is a further table beside sequences. `ids` are known already, or in a column of the table. `source` is the
    place of all rows where these are some of them.
    """

    place: str
    x: pl.DataFrame | Array
    columns: tuple[str, ...] = ()
    static: pl.DataFrame | None = None
    ids: Array | None = None
    source: str = ""

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Raw:
    """What a source delivers: labels as they were written, `test` None where no test part is known.

    `alone`, `alone_at`, `readings` and `files` are as in `Dataset`; nobody shall train on columns in `left_out`.

    `train_rows` is the official training part (the first so many rows) and `split_by` the column that must not
    straddle training and test rows, where the source knows of them.
    """

    name: str
    kind: Kind
    train: Samples
    test: Samples | None
    columns: tuple[str, ...]
    groups: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    train_rows: int | None = None
    split_by: str | None = None
    validation: Samples | None = None
    alone: Samples | None = None
    alone_at: str = ""
    readings: Mapping[str, ColumnReading] = field(default_factory=dict)
    files: tuple[FileSeen, ...] = ()
    left_out: tuple[str, ...] = ()


class PartsElsewhere(Protocol):
    """Whoever has the rows of a data set whose columns are empty here."""

    def encode_part(self, part: Any, preparation: Preparation) -> Any:
        """As the function of this name; the numbers of features stay where the rows are."""


@dataclass(frozen=True)
class Dataset:
    """Training and test samples with the same columns; class labels are 0..classes-1, `classes` is 0 for regression.

    Where several labels may be true of a sample (target "multilabel"), `y` is (n, classes) of zeros and ones.
    `validation` samples choose the best round, where there are any.
    `class_names` are what the labels were before, in that order; of several labels they are their columns.
    `alone` are labelled training samples that one silo, `alone_at`, has in a file of its own and others do not, with
    its columns only.
    `groups` names the group of each column, or is empty where no groups are known. `notes` are lines a user should
    see, for example how many rows a join dropped. `preparation` is what the settings of the data ask silos to do.
    `delivered` are all rows of the source before any was put aside or left out: their ids, in parts, if they have any,
    and their labels as they were written.
    `readings` say how the columns of people's own files are written, `csv` what the settings say of it,
    `files` what was understood. Where rows are `elsewhere`, columns are empty here.
    """

    name: str
    kind: Kind
    train: Samples
    test: Samples
    target: Target
    classes: int
    columns: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    preparation: Preparation = field(default_factory=Preparation)
    validation: Samples | None = None
    sample_weights: str | None = None  # what accompanies the training samples as their weights
    alone: Samples | None = None
    alone_at: str = ""
    delivered: tuple[tuple[Array, ...] | None, Array] | None = None
    readings: Mapping[str, ColumnReading] = field(default_factory=dict)
    csv: CsvSettings = field(default_factory=CsvSettings)
    files: tuple[FileSeen, ...] = ()
    elsewhere: PartsElsewhere | None = None


Source = TypeVar("Source", Raw, Dataset)


def parts_of(source: Raw | Dataset) -> dict[str, Samples]:
    """Training, validation and test samples, and those that one silo has alone, as far as there are any."""
    parts = {name: getattr(source, name) for name in ("train", "validation", "test", "alone")}
    return {name: part for name, part in parts.items() if part is not None}


def with_parts(source: Source, change: Callable[[Samples], Samples]) -> Source:
    changed: dict[str, Any] = {name: change(part) for name, part in parts_of(source).items()}
    return replace(source, **changed)
