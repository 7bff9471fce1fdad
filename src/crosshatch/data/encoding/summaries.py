"""Sequences as a table: six statistics of every variable over seven parts of the time."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, Raw, Samples, with_parts
from crosshatch.errors import ConfigError

STATISTICS = ("least", "largest", "mean", "deviation", "skewness", "count")
_SHARES = {"all": 1.0, "first10": 0.1, "first25": 0.25, "first50": 0.5, "last50": 0.5, "last25": 0.25, "last10": 0.1}
PARTS = tuple(_SHARES)
_NAME = re.compile(rf"(.+)\.({'|'.join(PARTS)})\.({'|'.join(STATISTICS)})")


def part_of_time(part: str, steps: int) -> slice:
    """The steps of a part of the time, rounded to whole ones, at least one.

    >>> part_of_time("first10", 48), part_of_time("last25", 48)
    (slice(0, 5, None), slice(36, 48, None))
    """
    length = max(1, int(steps * _SHARES[part] + 0.5))
    return slice(steps - length, steps) if part.startswith("last") else slice(0, length)


def summarise(x: Array, names: Sequence[str]) -> pl.DataFrame:
    """Sequences (n, t, d) as a table (n, 42 d) with columns such as `HR.first25.mean`; missing cells are left out.

    `deviation` and `skewness` are the population's (0 where all values are equal); a part without a measured cell has
    a `count` of 0 and no other value.

    >>> x = np.array([[[1.0], [2.0], [np.nan], [6.0]]])
    >>> summarise(x, ["HR"]).select("HR.all.mean", "HR.all.count", "HR.last10.largest").row(0)
    (3.0, 3.0, 6.0)
    """
    columns: dict[str, Array] = {}
    for k, name in enumerate(names):
        values = x[:, :, k].astype(np.float64)
        for part in PARTS:
            found = _statistics(values[:, part_of_time(part, x.shape[1])])
            columns |= {f"{name}.{part}.{statistic}": one for statistic, one in zip(STATISTICS, found, strict=True)}
    return pl.DataFrame(columns)


def _statistics(values: Array) -> tuple[Array, ...]:
    """Of the measured cells (n, t) of each row, in the order of `STATISTICS`, NaN where there is none."""
    measured = ~np.isnan(values)
    count = measured.sum(axis=1)
    none = count == 0
    safe = np.maximum(count, 1)
    mean = np.where(measured, values, 0.0).sum(axis=1) / safe
    apart = np.where(measured, values - mean[:, np.newaxis], 0.0)
    second, third = (apart**2).sum(axis=1) / safe, (apart**3).sum(axis=1) / safe
    flat = second <= (1e-12 * np.maximum(np.abs(mean), 1e-12)) ** 2  # what is left of equal values is rounding
    skewness = np.where(flat, 0.0, third / np.where(flat, 1.0, second) ** 1.5)
    least = np.where(measured, values, np.inf).min(axis=1)
    largest = np.where(measured, values, -np.inf).max(axis=1)
    statistics = (least, largest, mean, np.where(flat, 0.0, np.sqrt(second)), skewness)
    return *(np.where(none, np.nan, one) for one in statistics), count.astype(np.float64)


def summarised(raw: Raw) -> Raw:
    """A set of sequences as a table; variables keep their group."""
    if raw.kind != "sequence":
        raise ConfigError(
            f"data.summaries = true, but data '{raw.name}' is a set of {raw.kind}s: leave it out, it is for sequences"
        )

    def table(samples: Samples) -> Samples:
        assert isinstance(samples.x, np.ndarray)
        return replace(samples, x=summarise(samples.x, raw.columns))

    return replace(
        with_parts(raw, table),
        kind="table",
        columns=tuple(".".join(name) for name in product(raw.columns, PARTS, STATISTICS)),
        groups=tuple(group for group in raw.groups for _ in product(PARTS, STATISTICS)),
    )


def are_summaries(names: Sequence[str]) -> bool:
    """Whether columns are all called as `summarise` calls its own.

    >>> are_summaries(["HR.all.mean", "HR.last10.count"]), are_summaries(["HR.mean"])
    (True, False)
    """
    return bool(names) and all(_NAME.fullmatch(name) for name in names)
