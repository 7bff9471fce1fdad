"""A silo's table as a float32 matrix: impute, clip, standardise, one-hot; fitted on its training rows alone."""

import msgspec
import numpy as np
import polars as pl

from crosshatch.data.data_settings import CsvSettings, Impute, Preparation
from crosshatch.data.dataset import LARGEST, Array
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.data.text.date_format import as_days
from crosshatch.errors import DataError

MOST_CATEGORIES = 1000


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


class NumericColumn(msgspec.Struct, frozen=True, tag_field="kind", tag="numbers"):
    """Fitted numbers of one column: what replaces a missing value, the limits, and the standardising.

    `usual` is for notes on new rows alone; models of earlier versions have none.
    """

    name: str
    fill: float | None  # None: missing values are an error
    limits: tuple[float, float] | None  # None: nothing is clipped
    centre: float
    scale: float
    indicator: bool
    usual: Usual | None = None

    @property
    def features(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} missing") if self.indicator else (self.name,)

    def apply(self, column: pl.Series, place: str) -> list[Array]:
        values = numbers(column, place)
        missing = np.isnan(values)
        if missing.any():
            if self.fill is None:
                raise missing_values(self.name, int(missing.sum()), place)
            values = np.where(missing, self.fill, values)
        if self.limits is not None:
            values = np.clip(values, *self.limits)
        scaled = (values - self.centre) / self.scale
        return [scaled, missing] if self.indicator else [scaled]


class CategoricalColumn(msgspec.Struct, frozen=True, tag_field="kind", tag="categories"):
    """The categories seen in training; any other value is all zeros, a missing one also sets the indicator.

    `text`: the column was text, so that a reader shall not take "007" for a number.
    """

    name: str
    categories: tuple[str, ...]
    allow_missing: bool
    indicator: bool
    text: bool

    @property
    def features(self) -> tuple[str, ...]:
        named = tuple(f"{self.name}={category}" for category in self.categories)
        return (*named, f"{self.name} missing") if self.indicator else named

    def apply(self, column: pl.Series, place: str) -> list[Array]:
        texts = as_text(column, place)
        missing = texts.is_null()
        if missing.any() and not self.allow_missing:
            raise missing_values(self.name, int(missing.sum()), place)
        known = range(len(self.categories))
        numbered = texts.replace_strict(list(self.categories), list(known), default=None, return_dtype=pl.Int64)
        codes = numbered.fill_null(-1).to_numpy()
        one_hot: list[Array] = [codes == code for code in known]
        return [*one_hot, missing.to_numpy()] if self.indicator else one_hot


class TableEncoder(msgspec.Struct, frozen=True, tag_field="kind", tag="table", omit_defaults=True):
    """Columns in order, each with its fitted numbers; `readings` and `csv` say how they are written in text files."""

    columns: tuple[NumericColumn | CategoricalColumn, ...]
    readings: dict[str, ColumnReading] = msgspec.field(default_factory=dict)
    csv: CsvSettings | None = None

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(feature for column in self.columns for feature in column.features)

    def apply(self, frame: pl.DataFrame, place: str) -> Array:
        out = np.empty((frame.height, len(self.features)), dtype=np.float32)
        at = 0
        for column in self.columns:
            for values in column.apply(frame[column.name], place):
                out[:, at] = values
                at += 1
        return out


def fit_table(frame: pl.DataFrame, preparation: Preparation, place: str) -> TableEncoder:
    """Fit an encoder on training rows. `place` names the silo in errors."""
    columns: list[NumericColumn | CategoricalColumn] = []
    for series in frame:
        if holds_categories(series, preparation, place):
            texts, text = as_text(series, place), not is_numeric(series, place)
            categories, missing = texts.drop_nulls().unique().to_list(), texts.null_count()
            columns.append(categorical_column(series.name, preparation, categories, missing, place, text=text))
        else:
            columns.append(_fit_numeric(series, preparation, place))
    return TableEncoder(tuple(columns))


def holds_categories(series: pl.Series, preparation: Preparation, place: str) -> bool:
    """Whether a column is to be one-hot encoded."""
    categories = series.name in preparation.categorical or not is_numeric(series, place)
    if categories and not preparation.one_hot:
        raise DataError(
            f"{place}: column '{series.name}' holds categories: set data.one_hot = true or leave the column out"
        )
    return categories


def is_numeric(series: pl.Series, place: str) -> bool:
    """Whether a column holds numbers, or dates; text is categories, and other types are refused."""
    if series.dtype.is_numeric() or series.dtype in (pl.Boolean, pl.Null, pl.Date, pl.Datetime):
        return True
    if series.dtype in (pl.String, pl.Categorical, pl.Enum):
        return False
    raise DataError(
        f"{place}: column '{series.name}' is of type {series.dtype}: turn it into numbers or text, or leave it out"
    )


def numbers(series: pl.Series, place: str) -> Array:
    """A numeric column as float64 with NaN for missing values; infinity, or nearly so, is an error."""
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)  # of whatever type: a reader cannot tell
    if not is_numeric(series, place):
        text = series.cast(pl.String).drop_nulls()
        odd = text.filter(text.cast(pl.Float64, strict=False).is_null())
        some = f", like '{odd[0]}'," if len(odd) else ""
        raise DataError(
            f"{place}: column '{series.name}' is text here{some} and was numbers in training: make numbers of it"
        )
    if series.dtype.is_temporal():
        series = as_days(series)
    values = np.asarray(series.cast(pl.Float64).to_numpy())  # null becomes NaN
    large = int((np.abs(values) > LARGEST).sum())
    if large:
        raise large_values(series.name, large, place)
    return values


def as_text(series: pl.Series, place: str) -> pl.Series:
    """Categories as text, null where missing; whole numbers without a decimal point, so that 1 and 1.0 agree."""
    if not series.dtype.is_float():
        return series.cast(pl.String)
    numbers(series, place)  # refuses infinity
    values = series.fill_nan(None)
    whole = pl.when(values == values.round()).then(values.cast(pl.Int64, strict=False).cast(pl.String))
    return pl.select(whole.otherwise(values.cast(pl.String)).alias(series.name)).to_series()


def replacement(measured: Array, impute: Impute) -> float:
    """What stands for a missing value where there is imputing; 0 where a column was never measured in training."""
    if impute == "zero" or not len(measured):
        return 0.0
    return float(np.mean(measured) if impute == "mean" else np.median(measured))


def spread(values: Array) -> tuple[float, float]:
    """Mean and standard deviation; a constant column has deviation 1, so that it becomes 0 and not NaN."""
    if not len(values):
        return 0.0, 1.0
    mean, deviation = float(np.mean(values)), float(np.std(values))
    # Rounding may leave a constant column with a deviation of some ulps instead of 0.
    constant = deviation <= 10 * np.finfo(np.float64).eps * abs(mean)
    return mean, 1.0 if constant else deviation


def clipping(mean: float, deviation: float, clip: float) -> tuple[float, float]:
    """Between which limits values are left as they are."""
    return mean - clip * deviation, mean + clip * deviation


def missing_values(name: str, count: int, place: str) -> DataError:
    return DataError(
        f"{place}: column '{name}' has {count} missing values (NaN or empty): set data.impute to mean, median or zero, "
        "or take those rows out"
    )


def large_values(name: str, count: int, place: str) -> DataError:
    return DataError(
        f"{place}: column '{name}' has {count} infinite values (or beyond {LARGEST:.2g}): correct them or leave the "
        "column out (data.leave_out)"
    )


def _fit_numeric(series: pl.Series, preparation: Preparation, place: str) -> NumericColumn:
    values = numbers(series, place)
    missing = np.isnan(values)
    fill = None if preparation.impute == "none" else replacement(values[~missing], preparation.impute)
    if missing.any():
        if fill is None:
            raise missing_values(series.name, int(missing.sum()), place)
        values = np.where(missing, fill, values)
    usual = usual_values(values[~missing])
    return numeric_column(series.name, preparation, fill, spread(values), usual, any_missing=bool(missing.any()))


def numeric_column(
    name: str, preparation: Preparation, fill: float | None, spread: tuple[float, float], usual: Usual | None, *,
    any_missing: bool,
) -> NumericColumn:  # fmt: skip
    """What follows from mean and deviation of the training rows, the missing ones filled."""
    centre, scale = spread if preparation.standardise else (0.0, 1.0)
    limits = None if preparation.clip is None else clipping(*spread, preparation.clip)
    return NumericColumn(name, fill, limits, centre, scale, preparation.indicators and any_missing, usual)


def categorical_column(
    name: str, preparation: Preparation, categories: list[str], missing: int, place: str, *, text: bool
) -> CategoricalColumn:
    """What follows from the different values of the training rows; so many are missing."""
    if len(categories) > MOST_CATEGORIES:
        raise DataError(
            f"{place}: column '{name}' has {len(categories)} categories (at most {MOST_CATEGORIES}): leave it "
            "out, or name it as data.id if it identifies rows"
        )
    allow_missing = preparation.impute != "none"
    if missing and not allow_missing:
        raise missing_values(name, missing, place)
    indicator = preparation.indicators and missing > 0
    return CategoricalColumn(name, tuple(_in_order(categories)), allow_missing, indicator, text)


def _in_order(categories: list[str]) -> list[str]:
    try:
        return sorted(categories, key=float)
    except ValueError:
        return sorted(categories)
