"""A fitted preparation is a value: written as JSON and read again it does the same to the last bit."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
import torch

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings, Preparation
from crosshatch.data.dataset import Kind
from crosshatch.data.encoding.encode_part import Encoder, RawColumns, encode, encode_part
from crosshatch.errors import DataError

RANDOM = np.random.default_rng(3)
SETTINGS = [
    Preparation(impute="median", clip=1.3),
    Preparation(impute="zero", standardise=False, indicators=False),
]


def table(rows: int) -> pl.DataFrame:
    numbers = RANDOM.normal(1e3, 7, rows)
    numbers[RANDOM.random(rows) < 0.2] = np.nan
    texts = RANDOM.choice(np.array(["b", "a", "007", None], dtype=object), rows).tolist()
    return pl.DataFrame({"number": numbers, "text": texts, "code": RANDOM.integers(0, 3, rows)})


def series(rows: int) -> Any:
    x = RANDOM.normal(size=(rows, 5, 3))
    x[RANDOM.random(x.shape) < 0.3] = np.nan
    return x


def pixels(rows: int) -> Any:
    return RANDOM.integers(0, 256, (rows, 4, 3, 2)).astype(np.uint8)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(("kind", "make"), [("table", table), ("sequence", series), ("image", pixels)])
def test_kept_as_json_it_does_the_same(kind: Kind, make: Any, settings: Preparation) -> None:
    part = RawColumns("silo", kind, make(40), make(9), ("a", "b", "c"))
    encoded = encode_part(part, settings)
    text = msgspec.json.encode(encoded.encoder)
    assert b"null" not in text.replace(b'"limits":null', b"").replace(b'"fill":null', b"")  # no infinity got lost
    read: Encoder = msgspec.json.decode(text, type=Encoder)
    assert read == encoded.encoder
    assert torch.equal(encode(read, part.train, "silo"), encoded.train)
    assert torch.equal(encode(read, part.test, "silo"), encoded.test)


def test_every_silo_keeps_its_own() -> None:
    data = federate(load_dataset("digits"), FederationSettings(split="halves"), seed=1)
    left, right = (silo.encoder for silo in data.silos)
    assert left is not None
    assert right is not None
    plain = msgspec.to_builtins(left), msgspec.to_builtins(right)
    assert [one["window"] for one in plain] == [
        {"top": 0, "bottom": 8, "left": 0, "right": 4},
        {"top": 0, "bottom": 8, "left": 4, "right": 8},
    ]
    assert plain[0]["image"] == (8, 8)
    assert plain[0]["centre"] != plain[1]["centre"]
    assert data.class_names == tuple("0123456789")


def test_a_number_column_without_any_value_is_imputed_whatever_its_type() -> None:
    """A reader takes a column of empty cells for text."""
    train = pl.DataFrame({"a": [1.0, 2.0, 6.0, None]})
    part = RawColumns("silo", "table", train, pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)}), ("a",))
    encoded = encode_part(part, Preparation(impute="mean", standardise=False))
    assert encoded.test.tolist() == [[3.0, 1.0], [3.0, 1.0]]
    with pytest.raises(DataError, match="column 'a' is text here, like 'x', and was numbers"):
        encode(encoded.encoder, pl.DataFrame({"a": ["x", None]}), "silo")


def test_pixels_in_other_units_are_refused() -> None:
    part = RawColumns("silo", "image", pixels(5), pixels(5), ())
    encoder = encode_part(part, Preparation()).encoder
    assert torch.equal(
        encode(encoder, np.asarray(part.test, dtype=np.float64), "new"), encode(encoder, part.test, "new")
    )
    with pytest.raises(DataError, match="new: pixels have fractions, and those of the training images were whole"):
        encode(encoder, np.asarray(part.test) / 255.0, "new")
