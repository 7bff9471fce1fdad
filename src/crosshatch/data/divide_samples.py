"""From settings to owners: which client of a silo holds which sample, group by group where there are groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from crosshatch.data.data_settings import Clients, FederationSettings, SampleSplit, SiloSettings
from crosshatch.data.dataset import Indices, Samples, Target
from crosshatch.data.make_dataset import column_values
from crosshatch.errors import PartitionError, saying_where
from crosshatch.partition.samples import (
    Owners,
    by_dirichlet,
    by_main_labels,
    by_permutation,
    by_value,
    within_groups,
)
from crosshatch.seeds import generator


@dataclass(frozen=True)
class Division:
    """Owners (n,) and number of clients for each silo; groups (n,) where there is an outer horizontal tier."""

    owners: Mapping[str, tuple[Owners, int]]
    groups: Owners | None
    group_shape: tuple[int, ...]
    branches: tuple[int, ...]


def divide_samples(
    train: Samples, target: Target, silos: Sequence[SiloSettings], federation: FederationSettings, *, seed: int
) -> Division:
    """Owners for every silo, each with randomness of its own unless the federation is aligned."""
    everything = np.arange(len(train))
    groups: Owners | None = None
    shape = _nested("groups", federation.groups)
    branches = _nested("branches", federation.branches)
    if prod(shape) != 1 or federation.group_samples.kind == "column":
        random = generator(seed, "samples/groups")
        with saying_where("federation.groups", PartitionError):
            groups, count = _divide(train, target, prod(shape), federation.group_samples, random, everything)
        shape = shape if prod(shape) == count else (count,)
        if count == 1:
            groups = None
    owners = {}
    for silo in silos:
        split = silo.samples or federation.samples
        if silo.sizes is not None:
            split = replace(split, sizes=silo.sizes)
        clients = federation.clients if silo.clients is None else silo.clients
        if silo.clients is None and split.sizes is not None and (silo.sizes is not None or clients == 1):
            clients = len(split.sizes)
        random = generator(seed, "samples/all silos" if federation.aligned else f"samples/silo/{silo.name}")
        divide = partial(_divide, train, target, clients, split, random)
        with saying_where(f"silo '{silo.name}'", PartitionError):
            owners[silo.name] = divide(everything) if groups is None else within_groups(groups, divide)
    return Division(owners, groups, () if groups is None else shape, () if branches == (1,) else branches)


def _nested(key: str, given: int | tuple[int, ...]) -> tuple[int, ...]:
    """One number or several, outermost first."""
    shape = (given,) if isinstance(given, int) else given
    if not shape or min(shape) < 1:
        shown = given if isinstance(given, int) else list(given)
        rule = "every number must be at least 1" if shape else f"give at least one number, or leave {key} out"
        raise PartitionError(f"federation.{key} = {shown}: {rule}")
    return shape


def _divide(
    train: Samples, target: Target, clients: Clients, split: SampleSplit, random: np.random.Generator, rows: Indices
) -> tuple[Owners, int]:
    """Owners (len(rows),) among the samples at `rows`, and the number of clients."""
    if split.sizes is not None and split.kind not in ("permutation", "main_labels"):
        raise PartitionError(f"samples.sizes cannot be given for kind = '{split.kind}': leave them out")
    if split.kind == "column":
        if split.column is None:
            raise PartitionError("samples.kind = 'column' needs samples.column, the column whose values are clients")
        owners, values = by_value(column_values(train, split.column, "samples.column")[rows])
        if clients not in (1, len(values)):
            raise PartitionError(
                f"column '{split.column}' has {len(values)} values, not {clients}: leave the number out, it follows"
            )
        return owners, len(values)
    count = len(rows) if clients == "each" else clients
    if split.kind == "permutation":
        return by_permutation(len(rows), count, random=random, sizes=split.sizes), count
    if target in ("regression", "multilabel"):
        raise PartitionError(f"samples.kind = '{split.kind}' needs classes and this is {target}: use 'permutation'")
    y = train.y[rows]
    if split.kind == "dirichlet":
        return by_dirichlet(y, count, random=random, alpha=split.alpha), count
    owners = by_main_labels(y, count, random=random, main=split.main, share=split.main_share, sizes=split.sizes)
    return owners, count
