"""What the numbers of a column were like in training: averages, from which new rows may be told that do not fit."""

import msgspec
import numpy as np

from crosshatch.data.dataset import Array


class Usual(msgspec.Struct, frozen=True):
    """Mean and deviation of a column's values, and of their sizes, which are the decimal logarithms of |x| > 0.

    All are averages over the training rows with a value; a deviation of 0 is that of a column that never varied.
    `size` is None where all values were 0.
    """

    mean: float
    deviation: float
    size: float | None
    size_deviation: float


def usual_values(values: Array) -> Usual | None:
    """Those of a training column (n,), gaps left out; None where nothing was measured.

    >>> found = usual_values(np.array([1.0, 10.0, 100.0, 0.0]))
    >>> found.size, round(found.size_deviation, 2)
    (1.0, 0.82)
    """
    values = values[~np.isnan(values)]
    if not len(values):
        return None
    mean, deviation = float(np.mean(values)), float(np.std(values))
    if deviation <= 10 * np.finfo(np.float64).eps * abs(mean):
        deviation = 0.0  # some ulps, by rounding
    sizes = sizes_of(values)
    if not len(sizes):
        return Usual(mean, deviation, None, 0.0)
    return Usual(mean, deviation, float(np.mean(sizes)), float(np.std(sizes)))


def sizes_of(values: Array) -> Array:
    """Decimal logarithms of the absolute values that are not 0."""
    sizes: Array = np.log10(np.abs(values[values != 0]))
    return sizes
