"""Putting rows aside for testing or validation: seeded, stratified by class, what belongs together on one side."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from crosshatch.data.dataset import Array, Indices
from crosshatch.errors import ConfigError, DataError
from crosshatch.seeds import generator, shuffled

MOST = 0.9
"""The largest share of the rows that may be put aside."""
_AT_ONCE = 2**20  # rows, to spare memory
_FEW = 50  # classes that are picked one by one


def split_rows(
    y: Array,
    fraction: float,
    *,
    seed: int,
    stratify: bool,
    together: Array | None = None,
    purpose: Literal["test", "validation"] = "test",
) -> tuple[Indices, Indices]:
    """Positions of training and test (or validation) rows, both ascending; `fraction` of the rows are test rows.

    With `stratify` each class of `y` (n,) has its share of the test rows, up to one row, and no class is in the test
    rows alone. With `together` (n,) rows of equal value stay on one side, and shares are counted in such values; the
    first row of a value stands for its class.
    """
    key = "data.test_fraction" if purpose == "test" else "data.validation"
    if not 0 < fraction < 1:
        raise ConfigError(f"{key} = {fraction}: it must be between 0 and 1, for example 0.2")
    if fraction > MOST:
        raise ConfigError(
            f"{key} = {fraction} leaves {1 - fraction:.2g} of the rows to train on: give at most {MOST}, and "
            "data.limit to train on fewer rows"
        )
    random = generator(seed, f"data/{purpose}")
    if together is None:
        chosen = _choose(y if stratify else None, len(y), fraction, random)
        for label in np.setdiff1d(y, y[~chosen]) if stratify else ():
            chosen[np.flatnonzero(y == label)[0]] = False
    else:
        _, first, unit = np.unique(together, return_index=True, return_inverse=True)
        chosen = _choose(y[first] if stratify else None, len(first), fraction, random)[unit.reshape(-1)]
    if stratify and not chosen.any() and len(np.unique(y)) == len(y):
        raise DataError(
            f"every one of the {len(y)} rows has a class of its own, so none can be put aside ({key}): "
            "set data.target = 'regression' if the labels are a quantity, or give every class several rows"
        )
    test = np.flatnonzero(chosen)
    train = np.flatnonzero(~chosen)
    if not len(test) or not len(train):
        raise DataError(
            f"{len(y)} rows cannot be divided with {key} = {fraction}: one side would be empty, "
            f"use another fraction or {'data.test_path' if purpose == 'test' else 'a file of validation rows'}"
        )
    return train, test


def limit_rows(n: int, limit: int, *, seed: int) -> Indices:
    """Ascending positions of `limit` rows chosen at random, or of all if there are not more."""
    if limit < 1:
        raise ConfigError(f"data.limit = {limit}: it must be at least 1")
    if limit >= n:
        return np.arange(n)
    return np.sort(generator(seed, "data/limit").permutation(n)[:limit])


def balanced_rows(y: Array, target: str, *, seed: int) -> Indices:
    """Ascending positions of equally many rows of every class, as many as the rarest has, chosen at random."""
    if target not in ("binary", "multiclass"):
        raise ConfigError("data.balance = true: these labels are not classes of which a sample has one: leave it out")
    shuffled = generator(seed, "data/balance").permutation(len(y))
    classes, counts = np.unique(y, return_counts=True)
    return np.sort(np.concatenate([shuffled[y[shuffled] == one][: counts.min()] for one in classes]))


def _choose(y: Array | None, n: int, fraction: float, random: np.random.Generator) -> Array:
    """A mask (n,) with about fraction * n true entries, the classes of `y` in proportion."""
    # Every 1/fraction-th row of the class-sorted shuffle: proportional in each class and exact in total.
    chosen, done = np.zeros(n, dtype=bool), 0
    for rows in _by_class(shuffled(n, random), y):
        for some in np.array_split(rows, 1 + len(rows) // _AT_ONCE):
            numbers = np.arange(done, done + len(some) + 1)
            chosen[some[np.diff(np.floor(numbers * fraction + 0.5)) > 0]] = True
            done += len(some)
    return chosen


def _by_class(rows: Indices, y: Array | None) -> Iterator[Indices]:
    """Rows with the labels y, or all alike: class after class, in each as they come."""
    if y is None:
        yield rows
    elif len(classes := np.unique(y)) > _FEW:
        yield rows[np.argsort(y[rows], kind="stable")]
    else:
        for one in classes:
            yield rows[y[rows] == one]
