"""A silo's measurements over time as a float32 array, every number fitted on its training samples alone."""

import msgspec
import numpy as np

from crosshatch.data.data_settings import Preparation
from crosshatch.data.dataset import LARGEST, Array
from crosshatch.data.encoding.encode_table import (
    Usual,
    clipping,
    large_values,
    missing_values,
    replacement,
    spread,
    usual_values,
)
from crosshatch.errors import DataError


class SequenceEncoder(msgspec.Struct, frozen=True, tag_field="kind", tag="sequence"):
    """Fitted numbers (d,) for each variable over so many `steps` in time.

    `fill` is None where missing cells are an error, `limits` where nothing is clipped.
    """

    names: tuple[str, ...]
    steps: int
    fill: tuple[float, ...] | None
    limits: tuple[tuple[float, float], ...] | None
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    indicators: bool
    usual: tuple[Usual | None, ...] = ()  # for notes on new rows alone

    @property
    def features(self) -> tuple[str, ...]:
        return self.names + (tuple(f"{name} missing" for name in self.names) if self.indicators else ())

    def apply(self, x: Array, place: str) -> Array:
        """(n, t, d) with NaN for missing cells to (n, t, features) float32: values, then 0/1 for missing cells."""
        missing = _missing(x, self.names, place)
        if self.fill is None and missing.any():
            raise _missing_cells(self.names, missing, place)
        out = np.empty((*x.shape[:2], len(self.features)), dtype=np.float32)
        d = len(self.names)
        for k in range(d):  # by variable: the float64 work space stays (n, t)
            values = x[:, :, k].astype(np.float64)
            if self.fill is not None:
                values = forward_fill(values)
                values[np.isnan(values)] = self.fill[k]
            if self.limits is not None:
                values = np.clip(values, *self.limits[k])
            out[:, :, k] = (values - self.centre[k]) / self.scale[k]
        if self.indicators:
            out[:, :, d:] = missing
        return out


def fit_sequence(x: Array, names: tuple[str, ...], preparation: Preparation, place: str) -> SequenceEncoder:
    """Fit on training samples (n, t, d); the mean and deviation of a variable are over its measured cells."""
    for name in names:
        if name in preparation.categorical:
            raise DataError(
                f"{place}: '{name}' changes with time and cannot be categorical: take it out of data.categorical"
            )
    missing = _missing(x, names, place)
    if preparation.impute == "none" and missing.any():
        raise _missing_cells(names, missing, place)
    measured = [x[:, :, k][~missing[:, :, k]].astype(np.float64) for k in range(len(names))]
    moments = [spread(values) for values in measured]
    impute, clip = preparation.impute, preparation.clip
    return SequenceEncoder(
        names=names,
        steps=x.shape[1],
        fill=None if impute == "none" else tuple(replacement(values, impute) for values in measured),
        limits=None if clip is None else tuple(clipping(mean, deviation, clip) for mean, deviation in moments),
        centre=tuple(mean if preparation.standardise else 0.0 for mean, _ in moments),
        scale=tuple(deviation if preparation.standardise else 1.0 for _, deviation in moments),
        indicators=preparation.indicators and impute != "none",
        usual=tuple(usual_values(values) for values in measured),
    )


def forward_fill(x: Array) -> Array:
    """(n, t) with each NaN replaced by the latest earlier value of its row; NaN before the first value stays."""
    steps = np.arange(x.shape[1])
    latest = np.maximum.accumulate(np.where(np.isnan(x), 0, steps), axis=1)
    return np.take_along_axis(x, latest, axis=1)


def _missing(x: Array, names: tuple[str, ...], place: str) -> Array:
    large = (np.abs(x) > LARGEST).sum(axis=(0, 1))
    if large.any():
        first = int(np.flatnonzero(large)[0])
        raise large_values(names[first], int(large[first]), place)
    missing: Array = np.isnan(x)
    return missing


def _missing_cells(names: tuple[str, ...], missing: Array, place: str) -> DataError:
    counts = missing.sum(axis=(0, 1))
    first = int(np.flatnonzero(counts)[0])
    return missing_values(names[first], int(counts[first]), place)
