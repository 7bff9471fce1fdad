"""From raw samples to a data set: encode the labels, put test rows aside, limit the training rows."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl

from crosshatch.data.data_settings import DataSettings
from crosshatch.data.dataset import Array, Dataset, Indices, Raw, Samples, parts_of
from crosshatch.data.encode_labels import encode_labels, require_two_classes
from crosshatch.data.encoding.summaries import summarised
from crosshatch.data.looking.look_at_labels import fold_classes, keep_classes, said_of_labels
from crosshatch.data.notes import Note
from crosshatch.data.split import balanced_rows, limit_rows, split_rows
from crosshatch.errors import ConfigError, DataError
from crosshatch.partition.features import unknown

AT_RANDOM = "none"
"""As `data.split_by`: rows are drawn one by one, whatever the source says of what belongs together."""


def make_dataset(raw: Raw, settings: DataSettings) -> Dataset:
    place, written, positive = f"data '{raw.name}'", raw, settings.positive
    more: tuple[Note, ...] = ()
    if settings.fold_classes:
        raw, positive, more = fold_classes(raw, positive)
    raw = _numbered(raw)
    if settings.classes:
        raw = keep_classes(raw, settings.classes, fold=settings.fold_classes)
    if settings.summaries:
        raw = summarised(raw)
    files = [samples for samples in (raw.validation, raw.test) if samples is not None]
    labels = encode_labels(
        raw.train.y if raw.alone is None else np.concatenate([raw.train.y, raw.alone.y]),
        np.concatenate([samples.y for samples in files]) if files else None,
        place=place,
        target=settings.target,
        positive=positive,
        names=settings.labels,
    )
    everything = replace(raw.train, y=labels.train[: len(raw.train)])
    validation, alone = raw.validation, raw.alone
    if alone is not None:
        alone = replace(alone, y=labels.train[len(raw.train) :])
    if validation is not None:
        assert labels.test is not None
        validation = replace(validation, y=labels.test[: len(validation)])
    split_by = None if settings.split_by == AT_RANDOM else settings.split_by or raw.split_by

    def aside(
        samples: Samples, share: float, purpose: Literal["test", "validation"] = "test"
    ) -> tuple[Indices, Indices]:
        classes = labels.target in ("binary", "multiclass")
        together = None if split_by is None else column_values(samples, split_by, "data.split_by")
        seed = settings.split_seed
        return split_rows(samples.y, share, seed=seed, stratify=classes, together=together, purpose=purpose)

    if raw.test is not None:
        assert labels.test is not None
        train, test = everything, replace(raw.test, y=labels.test[-len(raw.test) :])
    else:
        if raw.train_rows is not None and settings.split_by is None:
            rows = np.arange(raw.train_rows), np.arange(raw.train_rows, len(everything))
        else:
            rows = aside(everything, settings.test_fraction)
        train, test = everything.take(rows[0]), everything.take(rows[1])
    if isinstance(settings.validation, str) and validation is None:
        raise ConfigError(
            f"data.validation = '{settings.validation}': a file of validation rows goes with files of your own; give a "
            "fraction of the training rows, for example 0.2"
        )
    if isinstance(settings.validation, float | int):
        rows = aside(train, settings.validation, "validation")
        train, validation = train.take(rows[0]), train.take(rows[1])
    if settings.balance:
        train = train.take(balanced_rows(train.y, labels.target, seed=settings.split_seed))
    if settings.limit is not None:
        train = train.take(limit_rows(len(train), settings.limit, seed=settings.split_seed))
    if labels.target in ("binary", "multiclass"):
        require_two_classes(train.y, place)
    seen = [column.name for file in raw.files for column in file.columns]
    for name in settings.csv.numbers if raw.files else ():
        if name not in seen:
            raise unknown("column", name, seen, "data.csv.numbers")
    weights = settings.sample_weights
    if weights is not None:
        column_values(train, weights, "data.sample_weights")
    leave_out = (
        settings.leave_out + raw.left_out + ((weights,) if weights is not None and weights in raw.columns else ())
    )
    delivered = parts_of(written).values()
    ids = tuple(part.ids for part in delivered if part.ids is not None)
    dataset = Dataset(
        raw.name, raw.kind, train, test, labels.target, labels.classes, raw.columns, labels.names, raw.groups,
        raw.notes + more, settings.preparation, validation, weights, alone, raw.alone_at,
        (ids if len(ids) == len(delivered) else None, np.concatenate([part.y for part in delivered])),
        raw.readings, settings.csv, raw.files,
    )  # fmt: skip
    dataset = _leave_out(dataset, tuple(dict.fromkeys(leave_out)))
    return replace(dataset, notes=(*dataset.notes, *said_of_labels(dataset))) if raw.files else dataset


def _numbered(raw: Raw) -> Raw:
    """The rows with their places in the source: those of further files come behind."""
    numbered: dict[str, Any] = {}
    count = 0
    for name, part in parts_of(raw).items():
        if name != "alone":
            kind = np.int32 if count + len(part) < 2**31 else np.int64
            numbered[name] = replace(part, numbers=np.arange(count, count + len(part), dtype=kind))
            count += len(part)
    return replace(raw, **numbered)


def column_values(samples: Samples, name: str, place: str) -> Array:
    """One value per sample (n,), from what accompanies the samples or from a column of a table."""
    extra = samples.extra.get(name)
    if isinstance(extra, np.ndarray):
        return extra
    if isinstance(samples.x, pl.DataFrame) and name in samples.x.columns:
        return plain_array(samples.x[name], f"{place}: column '{name}'")
    known = [key for key, value in samples.extra.items() if isinstance(value, np.ndarray)]
    known += samples.x.columns if isinstance(samples.x, pl.DataFrame) else []
    raise unknown("column", name, known, place)


def plain_array(series: pl.Series, place: str) -> Array:
    """A column without missing values as an array of numbers or text (n,), not of objects."""
    missing = series.is_null() | series.is_nan() if series.dtype.is_float() else series.is_null()
    if missing.any():
        row = int(missing.arg_true()[0]) + 1
        raise DataError(f"{place} has no value in row {row} of {len(series)}: fill it in or take the row out")
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return np.asarray(series.to_numpy())
    return np.asarray(series.cast(pl.String).to_list(), dtype=np.str_)


def _leave_out(dataset: Dataset, names: tuple[str, ...]) -> Dataset:
    if not names:
        return dataset
    for name in names:
        if name not in dataset.columns or dataset.kind == "image":
            raise unknown("column", name, dataset.columns, "data.leave_out")
    keep = [position for position, name in enumerate(dataset.columns) if name not in names]

    def cut(samples: Samples) -> Samples:
        if isinstance(samples.x, pl.DataFrame):
            # What is left out as a feature may still say which client a sample belongs to.
            extra = {
                name: plain_array(samples.x[name], f"column '{name}'")
                for name in names
                if not samples.x[name].null_count()
            }
            return replace(samples, x=samples.x.drop(names), extra={**samples.extra, **extra})
        return replace(samples, x=samples.x[..., keep])

    kept = {name: cut(part) for name, part in parts_of(dataset).items() if name != "alone"}
    return replace(
        dataset,
        **kept,  # type: ignore[arg-type]
        columns=tuple(dataset.columns[position] for position in keep),
        groups=tuple(dataset.groups[position] for position in keep) if dataset.groups else (),
    )
