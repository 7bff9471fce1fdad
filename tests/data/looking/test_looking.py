"""What is noticed of labels, ids and columns, against naive loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import DataSettings
from crosshatch.data.join import found_if_alike
from crosshatch.data.looking.look_at_labels import _ordered_purity
from crosshatch.data.notes import CHOSEN, DOUBTFUL, PLAIN, Note, by_weight, most_important


@given(st.lists(st.tuples(st.floats(-9, 9, allow_nan=False), st.integers(0, 1)), min_size=8, max_size=30))
@settings(max_examples=80, deadline=None)
def test_the_best_cut_of_a_column(rows: list[tuple[float, int]]) -> None:
    """Never better than the best threshold by a loop, and equal to it where values differ and the cut tells much."""
    values, y = (np.array(column) for column in zip(*rows, strict=True))
    if len(np.unique(y)) < 2 or len(np.unique(values)) < len(values):
        return
    best = 0.0
    for cut in [*values, np.inf]:
        right = float(np.mean((values >= cut) == (y == 1)))
        best = max(best, right, 1 - right)
    base = max(float(y.mean()), 1 - float(y.mean()))
    assert _ordered_purity(values, y) == pytest.approx(best if best > base + 0.5 * (1 - base) else 0.0)


def noticed(tmp_path: Path, frame: pl.DataFrame, name: str = "a.csv", **given: object) -> str:
    frame.write_parquet(tmp_path / name) if name.endswith("parquet") else frame.write_csv(tmp_path / name)
    dataset = load_dataset(DataSettings(path=name, label="y", impute="median", **given), base=tmp_path)  # type: ignore[arg-type]
    return "\n".join(map(str, dataset.notes))


def frame_of(rows: int = 200, **columns: object) -> pl.DataFrame:
    draw = np.random.default_rng(3)
    return pl.DataFrame({"x": draw.normal(size=rows), "y": draw.integers(0, 2, rows), **columns})


@pytest.mark.parametrize("how", ["equal", "nearly", "ordered", "missing", "words"])
def test_columns_that_give_the_label_away(tmp_path: Path, how: str) -> None:
    frame = frame_of(2000)
    y = frame["y"].to_numpy()
    draw = np.random.default_rng(5)
    leaks: dict[str, Any] = {
        "equal": y,
        "nearly": np.where(draw.random(2000) < 0.0005, 1 - y, y),
        "ordered": y * 3 + draw.random(2000),
        "missing": [float(i % 7) if label else None for i, label in enumerate(y)],
        "words": np.where(y == 1, "left", "stayed"),
    }
    said = noticed(tmp_path, frame.with_columns(leak=pl.Series(leaks[how])))
    assert "column 'leak' nearly tells the label by itself" in said
    assert "column 'x' nearly tells" not in said


def test_an_honest_column_is_not_blamed(tmp_path: Path) -> None:
    frame = frame_of(2000)
    good = frame["y"].to_numpy() * 2.5 + np.random.default_rng(6).normal(size=2000)  # nine in ten right
    rare = frame.with_columns(y=pl.Series(np.arange(2000) % 400 == 0).cast(pl.Int64), good=pl.Series(good))
    assert "nearly tells" not in noticed(tmp_path, frame.with_columns(good=pl.Series(good)))
    assert "nearly tells" not in noticed(tmp_path, rare)  # always no is right 399 times in 400, and tells nothing


def test_whole_numbers_as_labels_may_be_either(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    years, visits = (frame_of(600).with_columns(y=pl.Series(draw.integers(0, top, 600))) for top in (90, 20))
    assert "is a quantity: set data.target" in noticed(tmp_path, years)
    assert "20 whole numbers, each a class: set data.target" in noticed(tmp_path, visits)


def test_numbers_as_text_in_parquet(tmp_path: Path) -> None:
    frame = frame_of().with_columns(code=pl.Series([str(i % 9) for i in range(200)]))
    assert "column 'code' has numbers as text, like '0': they are categories" in noticed(tmp_path, frame, "a.parquet")


def test_dates_in_parquet_are_days(tmp_path: Path) -> None:
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 7, 18), eager=True)
    noticed(tmp_path, frame_of().with_columns(day=days), "a.parquet")
    dataset = load_dataset(DataSettings(path="a.parquet", label="y"), base=tmp_path)
    assert dataset.columns == ("x", "day")


def test_text_by_name_is_used_whatever_it_is(tmp_path: Path) -> None:
    frame = frame_of(60).with_columns(who=pl.Series([f"person{i}" for i in range(60)]))
    assert "column 'who' is left out" in noticed(tmp_path, frame)
    assert "left out" not in noticed(tmp_path, frame, categorical=("who",))


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (["007", "012"], ["7", "12"], 2),
        (["7.0", "12.0"], ["7", "12"], 2),
        (["AB-1", "cd-2"], ["ab1", "CD2"], 2),
        (["a", "b"], ["c", "d"], 0),
    ],
)
def test_ids_written_alike(one: list[str], other: list[str], common: int) -> None:
    found, way = found_if_alike({"one": np.array(one), "other": np.array(other)})
    assert found == common
    assert bool(way) == bool(common)


def test_the_heaviest_notes_come_first_and_once() -> None:
    notes = [Note("b", weight, "", str(weight)) for weight in (PLAIN, DOUBTFUL, CHOSEN, DOUBTFUL, CHOSEN)]
    assert [note.weight for note in by_weight(notes)] == [DOUBTFUL, CHOSEN, PLAIN]
    assert most_important(notes, 2) == ["warning: 3", "note: 2", "1 more such lines: see them by `crosshatch check`"]
