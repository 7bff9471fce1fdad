"""The entry points: load what [data] names, divide it as [federation] says."""

from pathlib import Path

import numpy as np
import torch

from crosshatch.data.common_samples import divide_common, require_common, with_own_rows
from crosshatch.data.data_settings import CsvSettings, DataSettings, FederationSettings, Preparation
from crosshatch.data.dataset import Array, Dataset, Raw
from crosshatch.data.divide_features import divide_features, silo_settings
from crosshatch.data.divide_samples import divide_samples, divide_test_samples
from crosshatch.data.encoding.encode_part import Encoded, encode_part
from crosshatch.data.federated import FederatedData, OwnSamples, SiloData, keep_silos, with_sample_weights
from crosshatch.data.join import read_file_per_silo
from crosshatch.data.make_dataset import column_values, make_dataset
from crosshatch.data.notes import GRAVE
from crosshatch.data.reading.one_file import read_one_file
from crosshatch.data.sources import read_named_set
from crosshatch.errors import ConfigError, DataError, PartitionError, require_whole
from crosshatch.partition.features import unknown


def load_dataset(
    data: str | DataSettings,
    folder: Path | None = None,
    *,
    federation: FederationSettings | None = None,
    base: Path | None = None,
) -> Dataset:
    """A built-in set, a set of the data `folder`, or people's own files (paths relative to `base`).

    `federation` is needed only where silos have files of their own.

    >>> load_dataset("wine").classes
    3
    """
    settings = DataSettings(name=data) if isinstance(data, str) else data
    silos = () if federation is None else silo_settings(federation)
    base = Path() if base is None else base
    if any(silo.path is not None for silo in silos):
        assert federation is not None
        if settings.name is not None:
            raise ConfigError(f"data.name = '{settings.name}', but silos have files of their own: leave one out")
        label_silo = None if federation.labels == "shared" else federation.labels
        keep_alone = federation.common is not None
        raw = read_file_per_silo(settings, silos, base, label_silo=label_silo, keep_alone=keep_alone)
        return _made(raw, settings)
    if (settings.name is None) == (settings.path is None):
        raise ConfigError("[data] needs either a name (see `crosshatch datasets`) or the path of your own file")
    require_whole("data.split_seed", settings.split_seed)
    if settings.limit is not None:
        require_whole("data.limit", settings.limit)
    if settings.split_seed < 0:
        raise ConfigError(f"data.split_seed = {settings.split_seed}: a seed is at least 0")
    if odd := [silo.name for silo in silos if silo.csv != CsvSettings()]:
        raise ConfigError(f"federation.silos: '{odd[0]}' has csv and no path: say it in data.csv, or give it a file")
    for key in ("id", "label", "test_path", "csv"):
        if settings.name is not None and getattr(settings, key) not in (None, CsvSettings()):
            raise ConfigError(
                f"data.{key} is for your own files and data.name = '{settings.name}' has its own: leave it out"
            )
    asked_for = [name for silo in silos for name in silo.columns]
    if settings.path is not None:
        return _made(read_one_file(settings, base, asked_for), settings)
    return _made(read_named_set(str(settings.name), folder, settings.positive), settings)


def federate(
    dataset: Dataset,
    federation: FederationSettings,
    preparation: Preparation | None = None,
    *,
    seed: int,
    per_client: bool = False,
) -> FederatedData:
    """Divide columns among silos and samples among their clients; each silo prepares its own columns.

    It does so as the settings the data set was loaded with say, or as `preparation` does where one is given. With
    `per_client` the test samples are divided too, so that `Simulator.evaluate_clients` can measure every client's.

    >>> data = federate(load_dataset("wine"), FederationSettings(silos=2, clients=5), seed=1)
    >>> [(silo.name, silo.clients, len(silo.features)) for silo in data.silos]
    [('silo1', 5, 7), ('silo2', 5, 6)]
    """
    preparation = dataset.preparation if preparation is None else preparation
    _require_fitting(dataset, preparation)
    require_common(federation, dataset)
    silos, own = silo_settings(federation), None
    parts, notes = divide_features(dataset, silos, federation)
    spare = dataset.elsewhere is not None  # rows may be many
    divided = divide_samples(dataset.train, dataset.target, silos, federation, seed=seed, spare=spare)
    tested = divide_test_samples(dataset, silos, federation, divided, seed=seed) if per_client else {}
    held = []
    for silo, part in zip(silos, parts, strict=True):
        encode = encode_part if dataset.elsewhere is None else dataset.elsewhere.encode_part
        encoded: Encoded = encode(with_own_rows(part, dataset, silo.name), preparation)
        train = encoded.train
        if dataset.alone is not None and dataset.alone_at == silo.name:
            own = OwnSamples(silo.name, train[len(dataset.train) :], _labels(dataset.alone.y, dataset))
            train = train[: len(dataset.train)]
        owners, clients = divided.owners[silo.name]
        if not part.columns and clients > (1 if divided.groups is None else len(np.unique(divided.groups))):
            raise PartitionError(
                f"silo '{silo.name}' has the labels and no columns, and {clients} clients: there is no block for them "
                "to average, set clients = 1 for this silo"
            )
        held.append(SiloData(
            silo.name, train, encoded.test, encoded.features, owners, clients, encoded.encoder, encoded.validation,
            *tested.get(silo.name, ()),
        ))  # fmt: skip
    divided_data = FederatedData(
        silos=tuple(held),
        y_train=_labels(dataset.train.y, dataset),
        y_test=_labels(dataset.test.y, dataset),
        target=dataset.target,
        classes=dataset.classes,
        label_silo=None if federation.labels == "shared" else federation.labels,
        groups=divided.groups,
        group_shape=divided.group_shape,
        branches=divided.branches,
        notes=dataset.notes + notes,
        class_names=dataset.class_names,
        y_validation=None if dataset.validation is None else _labels(dataset.validation.y, dataset),
    )
    if federation.only:
        if federation.common is not None:
            raise ConfigError("federation.only with federation.common: transfer is between two silos, leave one out")
        divided_data = keep_silos(divided_data, federation.only)
    if dataset.sample_weights is None:
        return divide_common(divided_data, federation, own, seed=seed)
    weights = column_values(dataset.train, dataset.sample_weights, "data.sample_weights")
    return with_sample_weights(divided_data, weights)


def build(
    data: DataSettings,
    federation: FederationSettings,
    folder: Path | None = None,
    *,
    base: Path | None = None,
    seed: int,
    per_client: bool = False,
) -> FederatedData:
    """Both steps for a config's sections [data] and [federation]."""
    dataset = load_dataset(data, folder, federation=federation, base=base)
    return federate(dataset, federation, seed=seed, per_client=per_client)


def _made(raw: Raw, settings: DataSettings) -> Dataset:
    """The data set; an error tells the gravest that was noticed before, for that may be why."""
    try:
        return make_dataset(raw, settings)
    except DataError as error:
        grave = [note for note in raw.notes if note.weight >= GRAVE]
        if not grave:
            raise
        raise DataError(f"{error}; noticed before: {grave[0]}") from None


def _require_fitting(dataset: Dataset, preparation: Preparation) -> None:
    if preparation.clip is not None and not preparation.clip > 0:
        raise ConfigError(f"data.clip = {preparation.clip}: it must be a positive number of standard deviations")
    static = dataset.train.extra.get("static")
    known = dataset.columns + (() if static is None or isinstance(static, np.ndarray) else tuple(static.columns))
    for name in preparation.categorical:
        if name not in known:
            raise DataError(str(unknown("column", name, known, "data.categorical")))


def _labels(y: Array, dataset: Dataset) -> torch.Tensor:
    return torch.from_numpy(y.astype(np.int64 if dataset.target == "multiclass" else np.float32))
