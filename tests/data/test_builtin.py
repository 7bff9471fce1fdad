"""The sets within scikit-learn, read without importing it, are what it gives itself."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn import datasets

from crosshatch.data.reading.builtin import BUILTIN, load_builtin


@pytest.mark.parametrize("name", list(BUILTIN))
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
