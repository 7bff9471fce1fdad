"""A federation from arrays that are in memory already: numpy, polars, and pandas where it is installed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.build import federate
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.dataset import Raw, Samples
from crosshatch.data.federated import FederatedData
from crosshatch.data.make_dataset import make_dataset
from crosshatch.errors import DataError


def federation_from_arrays(
    silos: Mapping[str, Any],
    y: Any,
    *,
    labels: str = "shared",
    clients: int = 1,
    test: float | tuple[Mapping[str, Any], Any] = 0.2,
    validation: float | None = None,
    split_seed: int = 0,
    seed: int = 0,
    **preparation: Any,
) -> FederatedData:
    """Rows (n, columns) of each silo by its name, the same samples in the same order in all, and labels y (n,).

    Frames keep the names of their columns, text among them is one-hot encoded. `test` is the share of the rows for
    testing, or rows and labels of their own; `validation` is the share of the training rows to choose by. What else
    `[data]` has may be said by name, as in `impute="median"`.

    >>> rng = np.random.default_rng(0)
    >>> bank, insurer = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    >>> data = federation_from_arrays({"bank": bank, "insurer": insurer}, bank[:, 0] + insurer[:, 0] > 0, clients=2)
    >>> [(silo.name, silo.features, tuple(silo.train.shape)) for silo in data.silos]
    [('bank', ('bank.0', 'bank.1', 'bank.2'), (80, 3)), ('insurer', ('insurer.0', 'insurer.1'), (80, 2))]
    """
    if not silos:
        raise DataError("federation_from_arrays needs at least one silo: give its rows by its name")
    train = _samples(silos, y, "y")
    tested = None if isinstance(test, int | float) else _samples(test[0], test[1], "the labels of test")
    if tested is not None and tested[0].columns != train[0].columns:
        raise DataError("the rows of test have other silos or columns than those for training: give the same")
    fraction = float(test) if isinstance(test, int | float) else 0.2
    try:
        settings = DataSettings(
            path="arrays",
            label="y",
            test_fraction=fraction,
            validation=validation,
            split_seed=split_seed,
            **preparation,
        )
    except TypeError as error:
        raise DataError(f"federation_from_arrays: {error}: see [data] in the reference of configs") from None
    frame, values = train
    groups = tuple(name for name in silos for _ in _columns_of(frame, name))
    raw = Raw(
        name="arrays", kind="table", train=Samples(frame, values),
        test=None if tested is None else Samples(*tested), columns=tuple(frame.columns), groups=groups,
    )  # fmt: skip
    settled = tuple(SiloSettings(name, columns=tuple(_columns_of(frame, name))) for name in silos)
    federation = FederationSettings(silos=settled, labels=labels, clients=clients)
    return federate(make_dataset(raw, settings), federation, seed=seed)


def _samples(silos: Mapping[str, Any], y: Any, place: str) -> tuple[pl.DataFrame, Any]:
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    if values.dtype == bool:
        values = values.astype(np.int64)
    if values.ndim != 1:
        raise DataError(f"{place} has {values.ndim} dimensions: give one label per sample")
    if not len(values):
        raise DataError(f"{place} is empty: a federation needs samples, give at least one label and its rows")
    frames = []
    for name, rows in silos.items():
        frame = _frame(name, rows)
        if len(frame) != len(values):
            raise DataError(
                f"silo '{name}' has {len(frame):,} rows for {len(values):,} labels: give the same samples, in one order"
            )
        frames.append(frame)
    return pl.concat(frames, how="horizontal"), values


def _frame(name: str, rows: Any) -> pl.DataFrame:
    """Rows of one silo as a frame whose columns are called `silo.column`."""
    if isinstance(rows, pl.DataFrame):
        frame = rows
    elif hasattr(rows, "columns") and hasattr(rows, "to_dict"):  # as pandas has it
        frame = pl.DataFrame({str(column): _plain(rows[column].to_numpy()) for column in rows.columns})
    else:
        array = np.asarray(rows)
        if array.ndim != 2:
            raise DataError(f"silo '{name}' has an array of {array.ndim} dimensions: give (samples, columns)")
        frame = pl.DataFrame({str(k): _plain(array[:, k]) for k in range(array.shape[1])})
    return frame.rename({column: f"{name}.{column}" for column in frame.columns})


def _plain(values: Any) -> Sequence[Any]:
    return values.tolist() if values.dtype == object else values  # type: ignore[no-any-return]


def _columns_of(frame: pl.DataFrame, silo: str) -> list[str]:
    return [column for column in frame.columns if column.startswith(f"{silo}.")]
