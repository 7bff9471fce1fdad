"""The sets within scikit-learn, read without importing it, are what it gives itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import datasets

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import DataSettings
from crosshatch.data.public_sets.builtin import BUILTIN, load_builtin


@pytest.mark.parametrize("name", [name for name in BUILTIN if name != "mtcd_ridge"])
def test_as_scikit_learn_has_them(name: str) -> None:
    raw, bunch = load_builtin(name), getattr(datasets, f"load_{name}")()
    theirs: Any = bunch
    np.testing.assert_array_equal(raw.train.y, theirs.target)
    assert raw.train.y.dtype == theirs.target.dtype
    if isinstance(raw.train.x, pl.DataFrame):
        np.testing.assert_array_equal(raw.train.x.to_numpy(), theirs.data)
        assert list(raw.columns) == list(theirs.feature_names) == raw.train.x.columns
    else:
        np.testing.assert_array_equal(raw.train.x, theirs.images.astype(np.float32) / 16)


def test_groups_of_breast_cancer() -> None:
    raw = load_builtin("breast_cancer")
    assert all(group in column for group, column in zip(raw.groups, raw.columns, strict=True))
    assert [raw.groups.count(group) for group in ("mean", "error", "worst")] == [10, 10, 10]


def test_without_importing_it() -> None:
    program = "import sys, crosshatch; crosshatch.load_dataset('wine'); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "sklearn" not in ran.stdout.split()


def test_the_made_ridge_problem_is_the_papers_and_always_the_same() -> None:
    raw, again = load_builtin("mtcd_ridge"), load_builtin("mtcd_ridge")
    assert isinstance(raw.train.x, pl.DataFrame)
    assert isinstance(again.train.x, pl.DataFrame)
    x, y = raw.train.x.to_numpy(), raw.train.y
    random = np.random.default_rng(0)
    np.testing.assert_array_equal(x, random.integers(0, 2, (1000, 2000)))
    np.testing.assert_array_equal(y, random.standard_normal(1000))
    assert set(np.unique(x)) == {0.0, 1.0}
    assert raw.train.x.equals(again.train.x)
    np.testing.assert_array_equal(y, again.train.y)
    data = load_dataset(DataSettings(name="mtcd_ridge", standardise=False))
    assert (len(data.train), len(data.test), len(data.columns), data.target) == (1000, 200, 2000, "regression")
