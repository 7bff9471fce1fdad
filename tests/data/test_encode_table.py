"""Tables against scikit-learn's encoders; constants, unknown categories and missing values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from crosshatch.data.data_settings import Impute, Preparation
from crosshatch.data.encoding.encode_table import fit_table
from crosshatch.errors import DataError

RANDOM = np.random.default_rng(0)


def frame(x: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({f"c{i}": x[:, i] for i in range(x.shape[1])})


def test_standardising_is_that_of_scikit_learn() -> None:
    train, test = RANDOM.normal(5, 3, (40, 4)), RANDOM.normal(5, 3, (9, 4))
    encoder = fit_table(frame(train), Preparation(), "silo")
    scaler = StandardScaler().fit(train)
    np.testing.assert_allclose(encoder.apply(frame(train), "silo"), scaler.transform(train), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(encoder.apply(frame(test), "silo"), scaler.transform(test), rtol=1e-5, atol=1e-6)
    assert encoder.apply(frame(test), "silo").dtype == np.float32
    assert encoder.features == ("c0", "c1", "c2", "c3")


def test_text_and_codes_are_one_hot_as_in_scikit_learn() -> None:
    train = pl.DataFrame({"town": ["b", "a", "c", "a"], "code": [10.0, 9.0, 9.0, 10.0]})
    test = pl.DataFrame({"town": ["a", "zz"], "code": [9.0, 11.0]})
    encoder = fit_table(train, Preparation(categorical=("code",)), "silo")
    assert encoder.features == ("town=a", "town=b", "town=c", "code=9", "code=10")
    reference = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(train.to_numpy())
    for rows in (train, test):
        np.testing.assert_array_equal(encoder.apply(rows, "silo"), reference.transform(rows.to_numpy()))


def test_codes_read_as_whole_and_as_broken_numbers_agree() -> None:
    encoder = fit_table(pl.DataFrame({"c": [1.0, 2.5, 2.0]}), Preparation(categorical=("c",)), "silo")
    assert encoder.features == ("c=1", "c=2", "c=2.5")
    assert encoder.apply(pl.DataFrame({"c": [1, 2]}), "silo").tolist() == [[1, 0, 0], [0, 1, 0]]
    assert encoder.apply(pl.DataFrame({"c": [1.0, 2.0]}), "silo").tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("impute", ["mean", "median", "zero"])
def test_imputing_is_that_of_scikit_learn(impute: Impute) -> None:
    train, test = RANDOM.normal(2, 1, (30, 3)), RANDOM.normal(2, 1, (8, 3))
    train[RANDOM.random(train.shape) < 0.3] = np.nan
    test[RANDOM.random(test.shape) < 0.3] = np.nan
    strategy = {"mean": "mean", "median": "median", "zero": "constant"}[impute]
    reference = SimpleImputer(strategy=strategy, fill_value=0 if impute == "zero" else None).fit(train)
    scaler = StandardScaler().fit(reference.transform(train))
    encoder = fit_table(frame(train), Preparation(impute=impute), "silo")
    assert encoder.features == ("c0", "c0 missing", "c1", "c1 missing", "c2", "c2 missing")
    for rows in (train, test):
        found = encoder.apply(frame(rows), "silo")
        np.testing.assert_allclose(found[:, ::2], scaler.transform(reference.transform(rows)), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[:, 1::2], np.isnan(rows))


def test_null_and_nan_are_both_missing_and_indicators_are_optional() -> None:
    rows = pl.DataFrame(
        {"a": [1.0, None, float("nan"), 3.0], "b": [True, False, True, None], "t": ["x", None, "y", "x"]}
    )
    encoder = fit_table(rows, Preparation(impute="mean", standardise=False), "silo")
    assert encoder.features == ("a", "a missing", "b", "b missing", "t=x", "t=y", "t missing")
    assert encoder.apply(rows, "silo")[1:3].tolist() == [[2, 1, 0, 0, 0, 0, 1], [2, 1, 1, 0, 0, 1, 0]]
    bare = fit_table(rows, Preparation(impute="mean", indicators=False), "silo")
    assert bare.features == ("a", "b", "t=x", "t=y")


def test_a_column_never_measured_in_training_is_zero() -> None:
    rows = pl.DataFrame({"a": pl.Series([None, None], dtype=pl.Float64)})
    encoder = fit_table(rows, Preparation(impute="median"), "silo")
    assert encoder.apply(rows, "silo").tolist() == [[0, 1], [0, 1]]


@given(value=st.floats(-1e12, 1e12), n=st.integers(1, 50))
def test_constant_columns_become_zero_not_nan(value: float, n: int) -> None:
    rows = pl.DataFrame({"a": [value] * n})
    encoded = fit_table(rows, Preparation(), "silo").apply(rows, "silo")
    np.testing.assert_allclose(encoded, 0, atol=1e-3)


def test_clipping_at_so_many_deviations() -> None:
    x = np.append(RANDOM.normal(0, 1, 200), 50.0)
    rows = pl.DataFrame({"a": x})
    encoded = fit_table(rows, Preparation(clip=2.0), "silo").apply(rows, "silo")
    np.testing.assert_allclose(encoded[:, 0], np.clip((x - x.mean()) / x.std(), -2, 2), rtol=1e-4, atol=1e-5)
    raw = fit_table(rows, Preparation(clip=2.0, standardise=False), "silo").apply(rows, "silo")
    assert raw.max() == pytest.approx(x.mean() + 2 * x.std(), rel=1e-5)


@pytest.mark.parametrize(
    ("column", "preparation", "message"),
    [
        ([1.0, None], Preparation(), "silo: column 'a' has 1 missing values .*data.impute"),
        ([1.0, float("nan")], Preparation(), "column 'a' has 1 missing values"),
        (["x", None], Preparation(), "column 'a' has 1 missing values"),
        ([1.0, float("inf")], Preparation(impute="mean"), "column 'a' has 1 infinite values"),
        ([1.0, 1e300], Preparation(), r"column 'a' has 1 infinite values \(or beyond 3.4e\+38\)"),
        ([1.0, float("inf")], Preparation(categorical=("a",)), "column 'a' has 1 infinite values"),
        (["x", "y"], Preparation(one_hot=False), "column 'a' holds categories: set data.one_hot"),
        ([str(i) for i in range(1001)], Preparation(), "1001 categories"),
        ([[1], [2]], Preparation(), "column 'a' is of type List"),
    ],
)
def test_unfit_columns(column: list[object], preparation: Preparation, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fit_table(pl.DataFrame({"a": column}), preparation, "silo")


def test_unfit_test_rows() -> None:
    encoder = fit_table(pl.DataFrame({"a": [1.0, 2.0]}), Preparation(), "silo")
    with pytest.raises(DataError, match="1 missing values"):
        encoder.apply(pl.DataFrame({"a": [1.0, None]}), "silo")
    with pytest.raises(DataError, match="is text here, like 'x', and was numbers in training"):
        encoder.apply(pl.DataFrame({"a": ["x"]}), "silo")
    texts = fit_table(pl.DataFrame({"a": ["x", "y"]}), Preparation(), "silo")
    with pytest.raises(DataError, match="1 missing values"):
        texts.apply(pl.DataFrame({"a": ["x", None]}), "silo")
