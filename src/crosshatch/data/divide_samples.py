"""From settings to owners: which client of a silo holds which sample, group by group where there are groups.

Clients get test samples like those they train on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np

from crosshatch.data.data_settings import Clients, FederationSettings, SampleSplit, SiloSettings
from crosshatch.data.dataset import Array, Dataset, Indices, Samples, Target
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
    train: Samples, target: Target, silos: Sequence[SiloSettings], federation: FederationSettings, *,
    seed: int, spare: bool = False,
) -> Division:  # fmt: skip
    """Owners for every silo, each with randomness of its own unless the federation is aligned.

    Where samples may be very many, `spare` has owners take no more memory than their numbers need.
    """
    groups: Owners | None = None
    shape = _nested("groups", federation.groups)
    branches = _nested("branches", federation.branches)
    if prod(shape) != 1 or federation.group_samples.kind == "column":
        random = generator(seed, "samples/groups")
        with saying_where("federation.groups", PartitionError):
            groups, count = _divide(train, target, prod(shape), federation.group_samples, random)
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
        key = "federation.clients" if split.sizes is None else "sizes"
        with saying_where(f"silo '{silo.name}', {key}", PartitionError):
            mine, count = divide() if groups is None else within_groups(groups, divide)
        owners[silo.name] = mine.astype(np.min_scalar_type(-count)) if spare else mine, count
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
    train: Samples, target: Target, clients: Clients, split: SampleSplit, random: np.random.Generator,
    rows: Indices | None = None,
) -> tuple[Owners, int]:  # fmt: skip
    """Owners among the samples at `rows`, or of all, and the number of clients."""
    some, samples = (slice(None), len(train)) if rows is None else (rows, len(rows))
    if split.sizes is not None and split.kind not in ("permutation", "main_labels"):
        raise PartitionError(f"samples.sizes cannot be given for kind = '{split.kind}': leave them out")
    if split.kind == "column":
        if split.column is None:
            raise PartitionError("samples.kind = 'column' needs samples.column, the column whose values are clients")
        owners, values = by_value(column_values(train, split.column, "samples.column")[some])
        if clients not in (1, len(values)):
            raise PartitionError(
                f"column '{split.column}' has {len(values)} values, not {clients}: leave the number out, it follows"
            )
        return owners, len(values)
    count = samples if clients == "each" else clients
    if split.kind == "permutation":
        return by_permutation(samples, count, random=random, sizes=split.sizes), count
    if target in ("regression", "multilabel"):
        raise PartitionError(f"samples.kind = '{split.kind}' needs classes and this is {target}: use 'permutation'")
    y = train.y[some]
    if split.kind == "dirichlet":
        return by_dirichlet(y, count, random=random, alpha=split.alpha), count
    owners = by_main_labels(y, count, random=random, main=split.main, share=split.main_share, sizes=split.sizes)
    return owners, count


NOBODY = -1


Divided = tuple[Owners, tuple[str, ...]]
"""The client of each test sample (n_test,) in a silo, NOBODY where none has it; and the names of its clients.

They have names where they are the values of a column.
"""


def divide_test_samples(
    dataset: Dataset,
    silos: Sequence[SiloSettings],
    federation: FederationSettings,
    divided: Division,
    *,
    seed: int,
) -> dict[str, Divided]:
    """Owners of the test samples for every silo, by the rule by which its training samples were divided.

    Where clients are the values of a column, a test sample belongs to the client of its value. Else it belongs to
    nobody by nature, and is dealt out at random, by the same seed: each client gets test samples in proportion to its
    training samples, within each class where the rule goes by classes. Groups come first, in the same way.
    """
    train, test = dataset.train, dataset.test
    of_train, of_test = np.zeros(len(train), dtype=np.int64), np.zeros(len(test), dtype=np.int64)
    if divided.groups is not None:
        dealer = _Dealer(train, test, of_train, of_test, generator(seed, "test samples/groups"))
        of_test = dealer.deal(federation.group_samples, divided.groups, "federation.groups")[0]
        of_train = divided.groups
    found = {}
    for silo in silos:
        random = generator(seed, "test samples/all silos" if federation.aligned else f"test samples/silo/{silo.name}")
        dealer = _Dealer(train, test, of_train, of_test, random)
        owners, _ = divided.owners[silo.name]
        found[silo.name] = dealer.deal(silo.samples or federation.samples, owners, f"silo '{silo.name}'")
    return found


@dataclass(frozen=True)
class _Dealer:
    """Training and test samples, each with its group."""

    train: Samples
    test: Samples
    of_train: Owners
    of_test: Owners
    random: np.random.Generator

    def deal(self, split: SampleSplit, owners: Owners, place: str) -> Divided:
        """Owners for the test samples where those of the training samples are `owners`."""
        if split.kind == "column":
            assert split.column is not None
            with saying_where(place):
                values = column_values(self.train, split.column, "samples.column")
                found = column_values(self.test, split.column, "samples.column")
            return self._by_value(values, found, owners)
        classes = split.kind in ("dirichlet", "main_labels")
        return self._in_proportion(owners, by_class=classes), ()

    def _by_value(self, train: Array, test: Array, owners: Owners) -> Divided:
        if train.dtype.kind != test.dtype.kind:  # 3 here, 3.0 or "3" there
            train, test = train.astype(str), test.astype(str)
        known, codes = np.unique(train, return_inverse=True)
        table = np.full((int(self.of_train.max()) + 1, len(known)), NOBODY, dtype=np.int64)
        table[self.of_train, codes.reshape(-1)] = owners
        places = np.minimum(np.searchsorted(known, test), len(known) - 1)
        found = (known[places] == test) & (self.of_test != NOBODY)
        names = [""] * (int(owners.max()) + 1)
        for owner, value in zip(*np.unique(np.stack([owners, codes.reshape(-1)]), axis=1), strict=True):
            names[owner] = str(known[value])
        return np.where(found, table[self.of_test, places], NOBODY), tuple(names)

    def _in_proportion(self, owners: Owners, *, by_class: bool) -> Owners:
        found = np.full(len(self.test), NOBODY, dtype=np.int64)
        for group in np.unique(self.of_test[self.of_test != NOBODY]):
            training, testing = np.flatnonzero(self.of_train == group), np.flatnonzero(self.of_test == group)
            for label in np.unique(self.test.y[testing]) if by_class else (None,):
                rows = testing if label is None else testing[self.test.y[testing] == label]
                like = training if label is None else training[self.train.y[training] == label]
                if not len(like):  # the group trains on no sample of this class
                    like = training
                found[self.random.permutation(rows)] = self._shares(np.bincount(owners[like]), len(rows))
        return found

    def _shares(self, counts: Indices, rows: int) -> Owners:
        """Owners of so many rows, in order: each client has its share of them, up to one row."""
        edges = np.cumsum(counts)
        # Equally spaced marks from a random start: whose share is less than a row is not always left out.
        marks = (np.arange(rows) + self.random.uniform()) / rows * edges[-1]
        found: Owners = np.minimum(np.searchsorted(edges, marks, side="right"), len(counts) - 1)
        return found
