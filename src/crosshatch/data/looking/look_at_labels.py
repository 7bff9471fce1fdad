"""What should be said of labels: few of a class, one column that gives them away, spellings of one class."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, Dataset, Indices, Raw, parts_of, with_parts
from crosshatch.data.encode_labels import matching, some_labels
from crosshatch.data.notes import CHOSEN, GRAVE, PLAIN, Note
from crosshatch.errors import ConfigError, DataError

FEW_TESTED = 10
RARE = 0.05
SEVERAL = 10
"""More whole numbers as labels than these may be a quantity."""
_GIVEN_AWAY = 0.998
_ROWS = 20_000
_AT_ONCE = 2**20


def said_of_labels(dataset: Dataset) -> Iterator[Note]:
    """Of the labels of a data set, and of columns that nearly equal them."""
    if dataset.target in ("binary", "multiclass"):
        yield from _said_of_classes(dataset)
    y, names = dataset.train.y, dataset.class_names
    if dataset.target == "regression" and bool((y == np.rint(y)).all()):
        text = (
            f'the label has {len(np.unique(y)):,} whole numbers and is a quantity: set data.target = "classes" if not'
        )
        yield Note("target", CHOSEN, dataset.name, text)
    if len(names) > SEVERAL and all(name.lstrip("-").isdigit() for name in names):
        text = f'the label has {len(names)} whole numbers, each a class: set data.target = "regression" if not'
        yield Note("target", CHOSEN, dataset.name, text)
    if dataset.target != "multilabel" and isinstance(dataset.train.x, pl.DataFrame):
        frame, y = dataset.train.x.head(_ROWS), dataset.train.y[:_ROWS]
        for series in frame:
            if len(y) >= 20 and _gives_away(series, y, classes=dataset.target != "regression"):
                yield Note(
                    "leak", GRAVE, dataset.name,
                    f"column '{series.name}' nearly tells the label by itself: if it is only known after the label, "
                    "name it in data.leave_out",
                )  # fmt: skip


def _said_of_classes(dataset: Dataset) -> Iterator[Note]:
    trained, tested = (_counts(samples.y, dataset.classes) for samples in (dataset.train, dataset.test))
    few = [f"'{name}' {count}" for name, count in zip(dataset.class_names, tested, strict=True) if count < FEW_TESTED]
    if few:
        some = ", ".join(few[:5]) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
        yield Note(
            "few test rows", CHOSEN, dataset.name,
            f"few test rows ({some}): metrics on them say little, use more rows or a larger data.test_fraction",
        )  # fmt: skip
    share = trained / max(1, trained.sum())
    if share.min() < RARE / max(1, dataset.classes - 1):
        name = dataset.class_names[int(share.argmin())]
        yield Note(
            "rare class", PLAIN, dataset.name,
            f"class '{name}' is {100 * share.min():.2g}% of the training rows: accuracy says little of it, auc and f1 "
            "more",
        )  # fmt: skip


def fold_classes(raw: Raw, positive: int | str | None) -> tuple[Raw, int | str | None, tuple[Note, ...]]:
    """The same rows with one spelling of every class, the positive one too, and what is to be said of it."""
    parts = parts_of(raw)
    if any(part.y.dtype.kind != "U" or part.y.ndim != 1 for part in parts.values()):
        return raw, positive, ()
    labels, words = fold_labels(np.concatenate([part.y for part in parts.values()]))
    if not words:
        return raw, positive, ()
    ends = np.cumsum([len(part) for part in parts.values()])
    folded: dict[str, Any] = {
        name: replace(part, y=y) for (name, part), y in zip(parts.items(), np.split(labels, ends[:-1]), strict=True)
    }
    if isinstance(positive, str):
        positive = next(
            (str(name) for name in np.unique(labels) if folded_name(name) == folded_name(positive)), positive
        )
    text = f"labels that differ in capitals or spaces only are one class: {words} (data.fold_classes)"
    return replace(raw, **folded), positive, (Note("classes alike", GRAVE, raw.name, text),)


def fold_labels(labels: Array) -> tuple[Array, str]:
    """Labels (n,) of text, spellings of one class that differ in capitals or spaces as the most frequent of them.

    Beside them what was done, in words; empty where nothing was.

    >>> fold_labels(np.array(["yes", "Yes", "no", "yes"]))[1]
    "'Yes' (1) counts as 'yes' (2)"
    """
    names, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    spelling: dict[str, int] = {}
    for i in np.argsort(-counts, kind="stable"):
        spelling.setdefault(folded_name(names[i]), int(i))
    kept = np.array([spelling[folded_name(name)] for name in names])
    changed = [
        f"'{names[i]}' ({counts[i]}) counts as '{names[kept[i]]}' ({counts[kept[i]]})"
        for i in range(len(names))
        if kept[i] != i
    ]
    return (names[kept][inverse.reshape(-1)], ", ".join(changed)) if changed else (labels, "")


def folded_name(name: str) -> str:
    """A class's name without what spellings of it may differ in."""
    return " ".join(str(name).casefold().split())


def _counts(y: Array, classes: int) -> Indices:
    """How many labels (n,) are each class; some at a time, to spare memory."""
    found = np.zeros(classes, dtype=np.int64)
    for some in np.array_split(y, 1 + len(y) // _AT_ONCE):
        found += np.bincount(some.astype(int), minlength=classes)
    return found


def _gives_away(series: pl.Series, y: Array, *, classes: bool) -> bool:
    missing = series.is_null().to_numpy()
    if classes and 0 < missing.sum() < len(y) and _purity(missing, y) >= _GIVEN_AWAY:
        return True
    known = ~missing
    if known.sum() < max(20, 0.5 * len(y)):
        return False
    y = y[known]
    series = series.drop_nulls()
    if series.dtype.is_temporal():
        series = series.to_physical()
    if not (series.dtype.is_numeric() or series.dtype == pl.Boolean):
        coded = series.cast(pl.Categorical).to_physical().to_numpy()
        return classes and len(np.unique(coded)) <= len(y) / 5 and _purity(coded, y) >= _GIVEN_AWAY
    values = series.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all() or len(np.unique(values)) < 2 or len(np.unique(y)) < 2:
        return False
    if classes:
        return _ordered_purity(values, y) >= _GIVEN_AWAY
    return bool(abs(np.corrcoef(values, y)[0, 1]) > 0.9999)


def _purity(values: Array, y: Array) -> float:
    """The share of rows whose label is the most frequent one of their value; 0 where the classes are too unequal."""
    table = np.zeros((int(values.max()) + 1, int(y.max()) + 1))
    np.add.at(table, (values.astype(int), y.astype(int)), 1)
    found = float(table.max(axis=1).sum() / len(y))
    base = float(table.sum(axis=0).max() / len(y))
    return found if found > base + 0.5 * (1 - base) else 0.0


def _ordered_purity(values: Array, y: Array) -> float:
    """How well as many intervals of the values as there are classes tell the labels."""
    order = np.argsort(values, kind="stable")
    ordered, labels = values[order], y[order].astype(int)
    classes = int(labels.max()) + 1
    if len(np.unique(values)) <= classes:
        return _purity(np.unique(values, return_inverse=True)[1].reshape(-1), y)
    if classes != 2:
        changes = np.flatnonzero(np.diff(labels))
        split = len(changes) == classes - 1 and bool((ordered[changes] < ordered[changes + 1]).all())
        return 1.0 if split else 0.0
    positive = np.concatenate(([0], np.cumsum(labels)))
    total, n = positive[-1], len(labels)
    right = (np.arange(n + 1) - positive) + (total - positive)  # zeros before the cut, ones behind it
    best = max(right.max(), n - right.min()) / n
    base = max(total, n - total) / n
    return float(best) if best > base + 0.5 * (1 - base) else 0.0


def keep_classes(raw: Raw, classes: Sequence[int | str], *, fold: bool) -> Raw:
    """The source without samples of other classes; `fold`: spellings of a name that was folded are one."""
    if len(set(map(str, classes))) < 2:
        raise ConfigError(f"data.classes = {list(classes)}: name at least two different labels, such as [3, 8]")
    if raw.train.y.ndim != 1:
        raise ConfigError("data.classes goes with one column of labels, data.label names several: leave one out")
    known = {folded_name(str(name)): str(name) for name in np.unique(raw.train.y)} if fold else {}
    classes = [known.get(folded_name(one), one) if isinstance(one, str) else one for one in classes]
    for one in classes:
        if not matching(raw.train.y, one).any():
            raise DataError(
                f"data '{raw.name}': no training row has the label '{one}' (data.classes): use some of "
                f"{some_labels(np.concatenate([part.y for part in parts_of(raw).values()]))}"
            )

    official = raw.train_rows
    return replace(
        with_parts(raw, lambda samples: samples.take(np.flatnonzero(_wanted(samples.y, classes)))),
        train_rows=None if official is None else int(_wanted(raw.train.y[:official], classes).sum()),
    )


def _wanted(y: Array, classes: Sequence[int | str]) -> Array:
    wanted: Array = np.any([matching(y, one) for one in classes], axis=0)
    return wanted
