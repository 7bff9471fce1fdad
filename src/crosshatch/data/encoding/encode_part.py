"""What a silo does with its raw columns: fit on its training rows, apply to training, test and new rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import numpy as np
import polars as pl
import torch

from crosshatch.data.data_settings import CsvSettings, Preparation
from crosshatch.data.dataset import Array, Kind
from crosshatch.data.encoding.encode_image import ImageEncoder, fit_image
from crosshatch.data.encoding.encode_sequence import SequenceEncoder, fit_sequence
from crosshatch.data.encoding.encode_table import TableEncoder, fit_table
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.partition.windows import Window

Encoder: TypeAlias = TableEncoder | SequenceEncoder | ImageEncoder
"""A silo's fitted preparation: a frozen value, written and read as JSON by msgspec."""


@dataclass(frozen=True)
class RawColumns:
    """A silo's raw columns: frames (table), (n, h, w[, c]) (image) or (n, t, d) (sequence), with their names.

    `place` says in errors whose they are and from where, `readings` and `csv` how they are written in a file. Pixels
    are those in the `window` of an `image` (h, w[, c]).
    """

    place: str
    kind: Kind
    train: pl.DataFrame | Array
    test: pl.DataFrame | Array
    columns: tuple[str, ...]
    image: tuple[int, ...] = ()
    window: Window | None = None
    validation: pl.DataFrame | Array | None = None
    readings: Mapping[str, ColumnReading] = field(default_factory=dict)
    csv: CsvSettings | None = None


@dataclass(frozen=True)
class Encoded:
    """Float32 tensors (n, features), (n, c, h, w) or (n, t, features), the features' names, and what made them."""

    train: torch.Tensor
    test: torch.Tensor
    features: tuple[str, ...]
    encoder: Encoder
    validation: torch.Tensor | None = None


def encode_part(part: RawColumns, preparation: Preparation) -> Encoded:
    """Encode one silo's part; nothing is learned from its other rows or from other silos."""
    encoder = _fit(part, preparation)
    # What is scored again and again lies where torch's own tensors begin, or every evaluation would copy it there.
    train, test = (
        encode(encoder, part.train, part.place),
        encode(encoder, part.test, f"{part.place}, test rows").clone(),
    )
    validation = None
    if part.validation is not None:
        validation = encode(encoder, part.validation, f"{part.place}, validation rows").clone()
    features = part.columns if isinstance(encoder, ImageEncoder) else encoder.features
    return Encoded(train, test, features, encoder, validation)


def encode(encoder: Encoder, x: pl.DataFrame | Array, place: str) -> torch.Tensor:
    """A silo's raw columns of some rows as its block takes them; `place` says in errors which rows."""
    if isinstance(encoder, TableEncoder) and not encoder.columns:
        values = np.zeros((len(x), 0))
    elif isinstance(encoder, TableEncoder):
        assert isinstance(x, pl.DataFrame)
        values = encoder.apply(x, place)
    else:
        assert isinstance(x, np.ndarray)
        values = encoder.apply(x, place)
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


def _fit(part: RawColumns, preparation: Preparation) -> Encoder:
    if part.kind == "table" and not part.columns:
        return TableEncoder(())  # a silo that has nothing but labels
    if isinstance(part.train, pl.DataFrame):
        fitted = fit_table(part.train, preparation, part.place)
        return msgspec.structs.replace(fitted, readings=dict(part.readings), csv=part.csv)
    if part.kind == "image":
        return fit_image(part.train, preparation, part.place, image=part.image, window=part.window)
    return fit_sequence(part.train, part.columns, preparation, part.place)
