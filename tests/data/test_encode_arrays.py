"""Sequences and images against naive loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.data.data_settings import Preparation
from crosshatch.data.dataset import Array
from crosshatch.data.encoding.encode_image import fit_image
from crosshatch.data.encoding.encode_sequence import fit_sequence, forward_fill
from crosshatch.errors import DataError

RANDOM = np.random.default_rng(0)


def naive_fill(x: Array) -> Array:
    out = x.copy()
    for row in out:
        for t in range(1, len(row)):
            if np.isnan(row[t]):
                row[t] = row[t - 1]
    return out


@given(st.lists(st.lists(st.sampled_from([np.nan, 1.0, 2.0, 3.0]), min_size=6, max_size=6), min_size=1, max_size=5))
def test_forward_fill(rows: list[list[float]]) -> None:
    x = np.array(rows)
    np.testing.assert_array_equal(forward_fill(x), naive_fill(x))


def test_a_sequence_by_hand() -> None:
    train = RANDOM.normal([3, -2], [2, 5], (20, 7, 2))
    train[RANDOM.random(train.shape) < 0.6] = np.nan
    test = RANDOM.normal([3, -2], [2, 5], (4, 7, 2))
    test[RANDOM.random(test.shape) < 0.6] = np.nan
    test[0] = np.nan  # never measured
    encoder = fit_sequence(train, ("a", "b"), Preparation(impute="mean", clip=1.5), "silo")
    assert encoder.features == ("a", "b", "a missing", "b missing")
    found = encoder.apply(test, "silo")
    assert found.dtype == np.float32
    for k in range(2):
        measured = train[:, :, k][~np.isnan(train[:, :, k])]
        filled = naive_fill(test[:, :, k])
        filled[np.isnan(filled)] = measured.mean()
        expected = np.clip((filled - measured.mean()) / measured.std(), -1.5, 1.5)
        np.testing.assert_allclose(found[:, :, k], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[:, :, 2 + k], np.isnan(test[:, :, k]))
    assert (found[0, :, :2] == 0).all()


def test_sequences_without_gaps_need_no_imputing() -> None:
    x = RANDOM.normal(size=(5, 4, 2)).astype(np.float32)
    x[:, :, 1] = 7
    encoder = fit_sequence(x, ("a", "b"), Preparation(), "silo")
    assert encoder.features == ("a", "b")
    found = encoder.apply(x, "silo")
    assert found[:, :, 0].std() == pytest.approx(1, rel=1e-5)
    assert (found[:, :, 1] == 0).all()
    bare = fit_sequence(x, ("a", "b"), Preparation(standardise=False), "silo")
    np.testing.assert_array_equal(bare.apply(x, "silo"), x)


def test_unfit_sequences() -> None:
    x = np.zeros((2, 3, 2))
    x[1, 1, 1] = np.nan
    with pytest.raises(DataError, match="column 'b' has 1 missing values"):
        fit_sequence(x, ("a", "b"), Preparation(), "silo")
    with pytest.raises(DataError, match="column 'b' has 1 missing values"):
        fit_sequence(np.zeros((2, 3, 2)), ("a", "b"), Preparation(), "silo").apply(x, "silo")
    with pytest.raises(DataError, match="'a' changes with time"):
        fit_sequence(x, ("a", "b"), Preparation(impute="mean", categorical=("a",)), "silo")
    x[1, 1, 1] = np.inf
    with pytest.raises(DataError, match="column 'b' has 1 infinite values"):
        fit_sequence(x, ("a", "b"), Preparation(impute="mean"), "silo")


@pytest.mark.parametrize("shape", [(1500, 3, 4), (30, 3, 4, 3)])
def test_images_by_hand(shape: tuple[int, ...]) -> None:
    train = RANDOM.integers(0, 256, shape).astype(np.uint8)
    test = RANDOM.integers(0, 256, (5, *shape[1:])).astype(np.uint8)
    found = fit_image(train, Preparation(), "silo").apply(test, "silo")
    unit = (train if train.ndim == 4 else train[..., None]) / 255.0
    mean, deviation = unit.mean(axis=(0, 1, 2)), unit.std(axis=(0, 1, 2))
    expected = ((test if test.ndim == 4 else test[..., None]) / 255.0 - mean) / deviation
    np.testing.assert_allclose(found, expected.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-5)
    assert found.dtype == np.float32
    assert found.flags.c_contiguous


def test_images_without_standardising_are_in_the_unit_interval() -> None:
    pixels = RANDOM.integers(0, 256, (4, 2, 2)).astype(np.uint8)
    found = fit_image(pixels, Preparation(standardise=False), "silo").apply(pixels, "silo")
    np.testing.assert_allclose(found[:, 0], pixels / 255, rtol=1e-6)
    sixteen = np.array([[[0, 8], [16, 4]]])
    found = fit_image(sixteen, Preparation(standardise=False), "silo").apply(sixteen, "silo")
    assert found.tolist() == [[[[0, 0.5], [1, 0.25]]]]
    floats = sixteen / 4.0
    assert fit_image(floats, Preparation(standardise=False), "silo").apply(floats, "silo").max() == 4
    clipped = fit_image(pixels, Preparation(clip=1.0), "silo").apply(pixels, "silo")
    assert np.abs(clipped).max() == pytest.approx(1, rel=1e-5)


def test_black_images_and_broken_pixels() -> None:
    black = np.zeros((3, 2, 2), dtype=np.uint8)
    assert (fit_image(black, Preparation(), "silo").apply(black, "silo") == 0).all()
    broken = np.zeros((3, 2, 2, 1))
    broken[1, 0, 0] = np.nan
    with pytest.raises(DataError, match="image 1 has pixels"):
        fit_image(broken, Preparation(), "silo")
