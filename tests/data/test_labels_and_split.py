"""Labels become 0..classes-1; test rows are put aside by class, seeded, and keep together what belongs together."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.data.encode_labels import encode_labels, require_two_classes
from crosshatch.data.looking.look_at_labels import fold_labels
from crosshatch.data.split import limit_rows, split_rows
from crosshatch.errors import ConfigError, DataError


def test_labels_in_sorted_order() -> None:
    labels = encode_labels(np.array([5, 1, 3, 1]), np.array([3]), place="p")
    assert (labels.train.tolist(), labels.target, labels.classes) == ([2, 0, 1, 0], "multiclass", 3)
    assert labels.test is not None
    assert labels.test.tolist() == [1]


def test_text_and_bool_labels() -> None:
    assert encode_labels(np.array(["yes", "no"]), None, place="p").train.tolist() == [1, 0]
    assert encode_labels(np.array([True, False]), None, place="p").target == "binary"
    assert encode_labels(np.array([True, False]), None, place="p", positive="false").train.tolist() == [0, 1]


@pytest.mark.parametrize("positive", [1, "1"])
def test_one_class_against_the_rest(positive: int | str) -> None:
    labels = encode_labels(np.array([1, 5, 2, 1]), None, place="p", positive=positive)
    assert (labels.train.tolist(), labels.target, labels.classes) == ([1, 0, 0, 1], "binary", 2)


@pytest.mark.parametrize(
    ("labels", "positive", "names"),
    [
        (np.array([5, 1, 3]), None, ("1", "3", "5")),
        (np.array([0.0, 1.0]), None, ("0", "1")),
        (np.array(["yes", "no"]), None, ("no", "yes")),
        (np.array(["yes", "no"]), "no", ("yes", "no")),  # the positive class is the second of two
        (np.array([True, False]), "false", ("true", "false")),
        (np.array([1, 5, 2]), 5, ("not 5", "5")),
    ],
)
def test_classes_keep_their_names(labels: np.ndarray, positive: int | str | None, names: tuple[str, ...]) -> None:
    assert encode_labels(labels, None, place="p", positive=positive).names == names


def test_numbers_are_a_quantity_if_broken_or_many() -> None:
    assert encode_labels(np.array([0.5, 1.0]), None, place="p").target == "regression"
    assert encode_labels(np.arange(51), None, place="p").target == "regression"
    assert encode_labels(np.arange(50), None, place="p").classes == 50
    assert encode_labels(np.arange(51), None, place="p", target="classes").classes == 51
    assert encode_labels(np.array([0.0, 1.0]), None, place="p").target == "binary"
    assert encode_labels(np.array([0, 1]), None, place="p", target="regression").classes == 0


@pytest.mark.parametrize(
    ("train", "test", "options", "message"),
    [
        (np.ones(3), None, {}, "all 3 labels are '1.0', one class only"),
        (np.array([0.0, np.nan]), None, {}, "label of row 2 is missing"),
        (np.array([0, 1]), np.array([2]), {}, "label '2' is in the test rows but not in the training rows"),
        (np.array(["a", "b"]), None, {"target": "regression"}, "regression needs numbers"),
        (np.array([1, 2]), None, {"positive": 7}, "no label is '7'.*use one of 1, 2"),
        (np.array([1, 1]), None, {"positive": 1}, "one class only"),
    ],
)
def test_unfit_labels(train: np.ndarray, test: np.ndarray | None, options: dict[str, str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        encode_labels(train, test, place="set", **options)  # type: ignore[arg-type]


def test_one_class_after_limiting() -> None:
    with pytest.raises(DataError, match="one class only"):
        require_two_classes(np.zeros(4), "set")


@given(
    y=st.lists(st.integers(0, 3), min_size=8, max_size=120),
    fraction=st.floats(0.1, 0.6),
    seed=st.integers(0, 2**31),
)
def test_test_rows_have_their_share_of_every_class(y: list[int], fraction: float, seed: int) -> None:
    labels = np.array(y)
    train, test = split_rows(labels, fraction, seed=seed, stratify=True)
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(len(y)))
    for label in set(y):
        size = (labels == label).sum()
        assert abs((labels[test] == label).sum() - fraction * size) <= 1 + 1e-9
        assert (labels[train] == label).any()
    again = split_rows(labels, fraction, seed=seed, stratify=True)
    assert (again[0] == train).all()


def test_another_seed_another_split() -> None:
    y = np.repeat([0, 1], 50)
    assert (
        split_rows(y, 0.2, seed=0, stratify=True)[1].tolist() != split_rows(y, 0.2, seed=1, stratify=True)[1].tolist()
    )


@given(units=st.lists(st.integers(0, 9), min_size=30, max_size=80).filter(lambda u: len(set(u)) > 4))
def test_rows_that_belong_together_stay_together(units: list[int]) -> None:
    together = np.array(units)
    train, test = split_rows(together % 2, 0.3, seed=1, stratify=True, together=together)
    assert not set(together[train]) & set(together[test])


def test_splits_that_cannot_be_made() -> None:
    with pytest.raises(ConfigError, match=r"data.test_fraction = 1.5"):
        split_rows(np.zeros(4), 1.5, seed=0, stratify=False)
    with pytest.raises(DataError, match="one side would be empty"):
        split_rows(np.zeros(2), 0.1, seed=0, stratify=False)


def test_limit() -> None:
    rows = limit_rows(100, 10, seed=3)
    assert len(set(rows.tolist())) == 10
    assert (np.diff(rows) > 0).all()
    assert limit_rows(5, 10, seed=3).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ConfigError, match=r"data.limit = 0"):
        limit_rows(5, 0, seed=3)


@pytest.mark.parametrize("purpose", ["test", "validation"])
def test_hardly_anything_to_train_on_is_refused(purpose: Literal["test", "validation"]) -> None:
    key = "data.test_fraction" if purpose == "test" else "data.validation"
    with pytest.raises(ConfigError, match=rf"{key} = 0.999 leaves 0.001 of the rows to train on: .*data.limit"):
        split_rows(np.arange(1000) % 2, 0.999, seed=0, stratify=True, purpose=purpose)
    assert len(split_rows(np.arange(1000) % 2, 0.9, seed=0, stratify=True)[0]) == 100


def test_spellings_of_a_class_are_one() -> None:
    labels, words = fold_labels(np.array(["yes", "Yes", "no", "yes", " YES"]))
    assert labels.tolist() == ["yes", "yes", "no", "yes", "yes"]
    assert words == "' YES' (1) counts as 'yes' (2), 'Yes' (1) counts as 'yes' (2)"
    assert fold_labels(np.array(["a", "b"]))[1] == ""
