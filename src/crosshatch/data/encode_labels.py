"""Labels as the losses want them: 0..classes-1, or numbers for regression."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from crosshatch.data.dataset import Array, Target
from crosshatch.errors import DataError, first_few

# Whole numbers with more distinct values than this are taken for a quantity unless data.target says otherwise.
MOST_CLASSES = 50


@dataclass(frozen=True)
class Labels:
    """Encoded labels of training rows and of test rows (None where they are still to be put aside).

    `names` are the classes as they were written, in the order of their numbers; of two, the second is the positive one.
    """

    train: Array
    test: Array | None
    target: Target
    names: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        return len(self.names)


def encode_labels(
    train: Array,
    test: Array | None,
    *,
    place: str,
    target: Literal["auto", "classes", "regression"] = "auto",
    positive: int | str | None = None,
    names: tuple[str, ...] = (),
) -> Labels:
    """Relabel to 0..classes-1 in sorted order, or to `label == positive`; regression keeps the numbers.

    `place` names the file or set in errors. Text is always classes; numbers are classes if they are whole and have at
    most 50 distinct values, unless `target` says. Labels (n, several) have two values each, and `names`.
    """
    if train.ndim == 2:
        return _encode_several(train, test, names, place=place, target=target, positive=positive)
    both = train if test is None else np.concatenate([train, test])
    for y in (train, test):
        if y is not None and y.dtype.kind == "f" and not np.isfinite(y).all():
            row = int(np.flatnonzero(~np.isfinite(y))[0]) + 1
            raise DataError(f"{place}: the label of row {row} is missing or not finite: fill it in or take the row out")
    if positive is None and (target == "regression" or (target == "auto" and not _look_like_classes(both))):
        if both.dtype.kind not in "biuf":
            raise DataError(f"{place}: the labels are text, for example '{both[0]}': regression needs numbers")
        return Labels(train.astype(np.float64), None if test is None else test.astype(np.float64), "regression")
    names = _names(both)
    if positive is not None:
        chosen = matching(both, positive)
        if not chosen.any():
            raise DataError(f"{place}: no label is '{positive}' (data.positive): use one of {some_labels(both)}")
        others = _names(both[~chosen])
        names = (*(others if len(others) < 2 else (f"not {positive}",)), *_names(both[chosen]))
        both = chosen.astype(np.int64)
    values = np.unique(both)
    coded = np.searchsorted(values, both).astype(np.min_scalar_type(-len(values)))
    if len(values) < 2:
        raise DataError(
            f"{place}: all {len(both)} labels are '{values[0]}', one class only: training needs at least two"
        )
    split_train = coded[: len(train)]
    absent = np.setdiff1d(np.arange(len(values)), split_train)
    if len(absent):
        raise DataError(
            f"{place}: label '{values[absent[0]]}' is in the test rows but not in the training rows: "
            "add such rows to the training part or take them out"
        )
    kind: Target = "binary" if len(values) == 2 else "multiclass"
    return Labels(split_train, None if test is None else coded[len(train) :], kind, names)


def _encode_several(
    train: Array, test: Array | None, names: tuple[str, ...], *, place: str, target: str, positive: int | str | None
) -> Labels:
    """Each label as 0 and 1, the second of its sorted values being 1."""
    if target == "regression" or positive is not None:
        key = "data.target = 'regression'" if target == "regression" else f"data.positive = '{positive}'"
        raise DataError(f"{place}: data.label names {len(names)} columns and {key}: name one column, or leave it out")
    both = train if test is None else np.concatenate([train, test])
    coded = np.empty(both.shape, dtype=np.int64)
    for column, name in enumerate(names):
        values, coded[:, column] = np.unique(both[:, column], return_inverse=True)
        if len(values) != 2:
            some = first_few(list(map(str, values.tolist())))
            raise DataError(
                f"{place}: label '{name}' has the values {some}: where data.label names several columns each has two, "
                "such as 0 and 1"
            )
    return Labels(coded[: len(train)], None if test is None else coded[len(train) :], "multilabel", names)


def require_two_classes(y: Array, place: str) -> None:
    """After rows were left out, for example by data.limit, there must still be something to tell apart."""
    if len(np.unique(y)) < 2:
        raise DataError(
            f"{place}: the {len(y)} training rows are of one class only: use more rows (data.limit, data.test_fraction)"
        )


def _look_like_classes(y: Array) -> bool:
    whole = y.dtype.kind != "f" or bool((y == np.rint(y)).all())
    return y.dtype.kind not in "biuf" or (whole and len(np.unique(y)) <= MOST_CLASSES)


def _names(y: Array) -> tuple[str, ...]:
    """The different labels in order, as people write them: no decimal point in whole numbers."""
    values = np.unique(y)
    if y.dtype.kind == "b":
        return tuple(str(value).lower() for value in values)
    if y.dtype.kind == "f" and bool((values == np.rint(values)).all()):
        values = values.astype(np.int64)
    return tuple(str(value) for value in values.tolist())


def matching(y: Array, label: int | str) -> Array:
    """Where labels (n,) are this one, as people write it.

    >>> matching(np.array([3.0, 8.0]), 8).tolist(), matching(np.array([True, False]), "true").tolist()
    ([False, True], [True, False])
    """
    if y.dtype.kind == "b":
        y = np.where(y, "true", "false")
    found: Array = y == label if y.dtype.kind in "biuf" and isinstance(label, int) else y.astype(str) == str(label)
    return found


def some_labels(y: Array) -> str:
    return first_few(_names(y))
