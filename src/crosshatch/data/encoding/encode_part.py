"""What a silo does with its raw columns: fit on its training rows, apply to training and test rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import torch

from crosshatch.data.data_settings import Preparation
from crosshatch.data.dataset import Array, Kind
from crosshatch.data.encoding.encode_image import fit_image
from crosshatch.data.encoding.encode_sequence import fit_sequence
from crosshatch.data.encoding.encode_table import fit_table


@dataclass(frozen=True)
class Part:
    """A silo's raw columns: frames (table), (n, h, w[, c]) (image) or (n, t, d) (sequence), with their names.

    `place` says in errors whose they are and from where.
    """

    place: str
    kind: Kind
    train: pl.DataFrame | Array
    test: pl.DataFrame | Array
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Encoded:
    """Float32 tensors (n, features), (n, c, h, w) or (n, t, features) and the names of the features."""

    train: torch.Tensor
    test: torch.Tensor
    features: tuple[str, ...]


def encode_part(part: Part, preparation: Preparation) -> Encoded:
    """Encode one silo's part; nothing is learned from its test rows or from other silos."""
    place, in_test = part.place, f"{part.place}, test rows"
    train, test = part.train, part.test
    if part.kind == "table":
        assert isinstance(train, pl.DataFrame)
        assert isinstance(test, pl.DataFrame)
        table = fit_table(train, preparation, place)
        return Encoded(_tensor(table.apply(train, place)), _tensor(table.apply(test, in_test)), table.features)
    assert isinstance(train, np.ndarray)
    assert isinstance(test, np.ndarray)
    if part.kind == "image":
        image = fit_image(train, preparation, place)
        return Encoded(_tensor(image.apply(train, place)), _tensor(image.apply(test, in_test)), part.columns)
    sequence = fit_sequence(train, part.columns, preparation, place)
    return Encoded(_tensor(sequence.apply(train, place)), _tensor(sequence.apply(test, in_test)), sequence.features)


def _tensor(values: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
