"""The scores of new rows computed by hand, from the weights and the training file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import load_file

from crosshatch import load_run
from tests.predict.cases import table_case, trained

Array = Any


def numbers_by_hand(train: pl.Series, new: pl.Series, clip: float) -> Array:
    """Median for gaps, clipped and standardised by the mean and deviation of the filled training rows; an indicator."""
    known = [value for value in train.to_list() if value is not None]
    median = float(np.median(known))
    filled = [median if value is None else value for value in train.to_list()]
    mean = sum(filled) / len(filled)
    deviation = (sum((value - mean) ** 2 for value in filled) / len(filled)) ** 0.5
    columns = []
    for value in new.to_list():
        shown = median if value is None else value
        shown = min(max(shown, mean - clip * deviation), mean + clip * deviation)
        row = [(shown - mean) / deviation]
        columns.append([*row, float(value is None)] if len(known) < len(train) else row)
    return np.array(columns)


def categories_by_hand(train: pl.Series, new: pl.Series) -> Array:
    """One column per training category in order; a new one is all zeros, a gap sets the indicator alone."""
    known = sorted({str(value) for value in train.to_list() if value is not None})
    rows = [[float(str(value) == one) for one in known] for value in new.to_list()]
    if train.null_count():
        rows = [[*row, float(value is None)] for row, value in zip(rows, new.to_list(), strict=True)]
    return np.array(rows)


def test_a_table_by_hand(tmp_path: Path) -> None:
    out, _ = trained(tmp_path, table_case(tmp_path))
    as_text = {"colour": pl.String}
    train = pl.read_csv(tmp_path / "people.csv", schema_overrides=as_text)
    new = pl.read_csv(tmp_path / "new.csv", schema_overrides=as_text)
    assert new["colour"][0] == "violet"  # nobody was when the model was trained
    assert new["colour"].null_count() > 0
    assert new["income"].null_count() > 0
    prepared = {
        "a": [numbers_by_hand(train["age"], new["age"], 1.5), categories_by_hand(train["colour"], new["colour"])],
        "b": [numbers_by_hand(train["income"], new["income"], 1.5), categories_by_hand(train["code"], new["code"])],
    }
    score = np.zeros(len(new))
    for silo, parts in prepared.items():
        weights = load_file(out / "model" / f"{silo}.safetensors")
        score += np.concatenate(parts, axis=1) @ weights["layers.0.weight"][0] + weights["layers.0.bias"][0]
    found = load_run(out).predict(tmp_path / "new.csv")
    np.testing.assert_allclose(found.scores[:, 0], score, rtol=0, atol=1e-6)
    assert np.abs(score).max() > 0.1


def test_a_text_that_looks_like_a_number_stays_what_it_was(tmp_path: Path) -> None:
    out, _ = trained(tmp_path, table_case(tmp_path))
    run = load_run(out)
    rows = pl.DataFrame({"id": [1, 2], "age": [40, 40], "income": [9.0, 9.0], "code": [1, 1], "colour": ["007", "007"]})
    rows.write_csv(tmp_path / "agents.csv")  # a reader sees nothing but the number 7
    found = run.predict(tmp_path / "agents.csv").scores
    assert np.array_equal(found, run.predict(rows).scores)
    assert not np.array_equal(found, run.predict(rows.with_columns(colour=pl.lit("7"))).scores)


def test_one_row_with_nothing_but_gaps(tmp_path: Path) -> None:
    out, _ = trained(tmp_path, table_case(tmp_path))
    (tmp_path / "gap.csv").write_text("id,age,income,code,colour\n7,,,,\n")
    found = load_run(out).predict(tmp_path / "gap.csv")
    assert found.ids.tolist() == [7]
    assert np.isfinite(found.scores).all()


@pytest.mark.parametrize("kind", ["joint", "by silo", "loose", "frames"])
def test_the_ways_to_give_rows_agree(tmp_path: Path, kind: str) -> None:
    out, _ = trained(tmp_path, table_case(tmp_path))
    run = load_run(out)
    new = pl.read_csv(tmp_path / "new.csv", schema_overrides={"colour": pl.String})
    left, right = new.select("id", "age", "colour"), new.select("income", "id", "code").reverse()
    left.write_csv(tmp_path / "left.csv")
    right.write_parquet(tmp_path / "right.parquet")
    files = tmp_path / "left.csv", tmp_path / "right.parquet"
    given: Any = {
        "joint": tmp_path / "new.csv",
        "by silo": {"a": files[0], "b": files[1]},
        "loose": [files[1], files[0]],
        "frames": {"b": right, "a": left},
    }
    found = run.predict(given[kind]).frame
    expected = run.predict(new).frame
    assert found.equals(expected)
