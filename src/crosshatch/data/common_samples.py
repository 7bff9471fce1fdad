"""Samples that both silos have, and those that the one with the labels has alone: what transfer starts from."""

from dataclasses import replace

import numpy as np
import polars as pl
import torch

from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.dataset import Dataset, Indices
from crosshatch.data.encoding.encode_part import RawColumns
from crosshatch.data.federated import FederatedData, OwnSamples, keep_samples
from crosshatch.data.notes import PLAIN, Note
from crosshatch.errors import ConfigError, PartitionError
from crosshatch.seeds import generator


def require_common(federation: FederationSettings, dataset: Dataset) -> None:
    """Refuse what is not a number of common samples, and what does not go with them."""
    common = federation.common
    if common is None:
        return
    if isinstance(common, bool) or not (common == "all" or isinstance(common, int | float)):
        raise ConfigError(
            f"federation.common = {common!r}: give how many training samples both silos have, their share, or 'all'"
        )
    if common != "all" and not common > 0:
        raise PartitionError(
            f"federation.common = {common}: without common samples nothing can be transferred, give at least 1"
        )
    if isinstance(common, float) and common > 1:
        raise ConfigError(f"federation.common = {common}: a share of the training samples is above 0 and at most 1")
    if isinstance(common, int) and common > len(dataset.train):
        raise PartitionError(
            f"federation.common = {common}: there are {len(dataset.train)} training samples that both silos could "
            "have, give at most so many, or 'all'"
        )
    if dataset.sample_weights is not None:
        raise ConfigError("data.sample_weights does not go with federation.common: leave one of them out")


def with_own_rows(part: RawColumns, dataset: Dataset, silo: str) -> RawColumns:
    """A silo's part with the rows that it has alone behind those of all, to be prepared together."""
    if dataset.alone is None or dataset.alone_at != silo:
        return part
    assert isinstance(part.train, pl.DataFrame)
    assert isinstance(dataset.alone.x, pl.DataFrame)
    return replace(part, train=pl.concat([part.train, dataset.alone.x.select(part.columns)], how="vertical_relaxed"))


def common_rows(samples: int, common: int | float | str, *, seed: int) -> Indices:
    """Which of so many training samples are common."""
    count = (
        samples if common == "all" else common if isinstance(common, int) else max(1, round(float(common) * samples))
    )
    if count == samples:
        return np.arange(samples)
    return np.sort(generator(seed, "common samples").permutation(samples)[:count])


def divide_common(
    data: FederatedData, federation: FederationSettings, own: OwnSamples | None, *, seed: int
) -> FederatedData:
    """The data with the common samples alone; the others are the label silo's, beside those it has of its `own`.

    The silo with the labels is the one whose file has them or that federation.labels names, else the first.
    """
    common, samples = federation.common, len(data.y_train)
    if common is None:
        return data
    chosen = common_rows(samples, common, seed=seed)
    count, rest = len(chosen), torch.as_tensor(np.setdiff1d(np.arange(samples), chosen))
    names = [silo.name for silo in data.silos]
    holder = own.silo if own is not None else data.label_silo or names[0]
    x, y = data.silos[names.index(holder)].train[rest], data.y_train[rest]
    if own is not None:
        x, y = torch.cat([x, own.x]), torch.cat([y, own.y.to(y)])
    text = f"{count} training samples are common; silo '{holder}' has {len(y)} more, with their labels"
    note = Note("common samples", PLAIN, "", text)
    return replace(keep_samples(data, chosen), alone=OwnSamples(holder, x, y), notes=(*data.notes, note))
