"""A data set after it was divided both ways: what every silo holds, and which of its clients holds which sample."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from crosshatch.data.dataset import Target
from crosshatch.data.notes import Note
from crosshatch.errors import DataError, PartitionError

if TYPE_CHECKING:
    from crosshatch.data.encoding.encode_part import Encoder

Split = Literal["train", "test", "validation"]


@dataclass(frozen=True)
class SiloData:
    """One silo's columns of all samples, prepared for its block.

    `train` (n_train, ...) and `test` (n_test, ...) are float32 and contiguous; rows are the same samples in every
    silo. `owners` (n_train,) is the client of this silo that holds each training sample, 0..clients-1; a client may
    hold none. `encoder` is how raw rows were prepared, where `federate` did so. `validation` (n_validation, ...) are
    further rows, to choose the best round by. `test_owners` (n_test,) is the client of each test sample, -1 where
    nobody has it, if the test samples were divided at all; `client_names` are what its clients are called, if they
    have names.

    >>> left = SiloData("left", torch.zeros(3, 2), torch.zeros(1, 2), ("a", "b"), np.array([0, 1, 1]), clients=2)
    >>> np.bincount(left.owners).tolist()
    [1, 2]
    """

    name: str
    train: torch.Tensor
    test: torch.Tensor
    features: tuple[str, ...]
    owners: npt.NDArray[np.int64]
    clients: int
    encoder: Encoder | None = None
    validation: torch.Tensor | None = None
    test_owners: npt.NDArray[np.int64] | None = None
    client_names: tuple[str, ...] = ()

    def rows(self, of: Split) -> torch.Tensor:
        found: torch.Tensor = getattr(self, of)
        return found


@dataclass(frozen=True)
class OwnSamples:
    """Labelled samples that one silo has and no other: prepared rows x (n, ...) and labels y (n,).

    >>> OwnSamples("bank", torch.zeros(3, 2), torch.zeros(3)).silo
    'bank'
    """

    silo: str
    x: torch.Tensor
    y: torch.Tensor


@dataclass(frozen=True)
class FederatedData:
    """All silos with the labels of their common samples.

    `y_train`, `y_test` are float32 for binary labels {0, 1} and regression, int64 for several classes, and (n, classes)
    of float32 zeros and ones for the target "multilabel". `label_silo` is None where every client has the labels of its
    samples. `groups` (n_train,) is the group of each sample where whole vertical federations are members of outer
    horizontal tiers. Clients of a silo never straddle groups. `group_shape` says how groups nest, outermost first:
    (2, 5) are two regions of five groups each. `branches` likewise says how a silo's clients are divided among branches
    below its hub, in order and equally. `weighted`: beside its label each training sample has a weight, the last column
    of `y_train` (n, labels + 1), float32; see `with_sample_weights`. `class_names` are the labels as they
    were written; of two classes the second is the positive one, and of several labels they are their columns. `alone`
    are further samples of the silo with the labels, for transfer.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> data = federate(load_dataset("digits"), FederationSettings(split="halves"), seed=1)
    >>> data.classes, data.silos[0].name, tuple(data.silos[0].train.shape)
    (10, 'left', (1438, 1, 8, 4))
    """

    silos: tuple[SiloData, ...]
    y_train: torch.Tensor
    y_test: torch.Tensor
    target: Target
    classes: int
    label_silo: str | None = None
    groups: npt.NDArray[np.int64] | None = None
    group_shape: tuple[int, ...] = ()
    branches: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()
    class_names: tuple[str, ...] = ()
    y_validation: torch.Tensor | None = None
    weighted: bool = False
    alone: OwnSamples | None = None

    @cached_property
    def label_holder(self) -> int:
        return [silo.name for silo in self.silos].index(str(self.label_silo))

    def labels(self, of: Split) -> torch.Tensor:
        found: torch.Tensor = getattr(self, f"y_{of}")
        return found

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together; `federate` makes none such."""
        for silo in self.silos:
            _require_fitting(silo, len(self.y_train), len(self.y_test), self.y_validation)
        names = [silo.name for silo in self.silos]
        if self.label_silo is not None and self.label_silo not in names:
            raise PartitionError(f"label_silo = '{self.label_silo}' is not a silo: the silos are {', '.join(names)}")
        if self.groups is not None and len(self.groups) != len(self.y_train):
            raise PartitionError(f"groups has {len(self.groups)} entries for {len(self.y_train)} training samples")


def move(data: FederatedData, device: str, precision: torch.dtype) -> FederatedData:
    """The same data on a device and in a precision."""

    def to(tensor: torch.Tensor | None, kind: torch.dtype | None = precision) -> Any:
        return None if tensor is None else tensor.to(device, kind)

    silos = tuple(
        replace(silo, train=to(silo.train), test=to(silo.test), validation=to(silo.validation)) for silo in data.silos
    )
    alone = data.alone and replace(data.alone, x=to(data.alone.x), y=to(data.alone.y))
    y_train, y_test, y_validation = (
        to(y, precision if y is not None and y.is_floating_point() else None)
        for y in (data.y_train, data.y_test, data.y_validation)
    )
    return replace(data, silos=silos, y_train=y_train, y_test=y_test, y_validation=y_validation, alone=alone)


def with_sample_weights(data: FederatedData, weights: npt.ArrayLike) -> FederatedData:
    """The same data with a weight (n,) for each training sample, taken times one number so that their mean is one.

    Who has a sample's label has its weight. The loss that takes both is `SampleWeighted`.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=1)
    >>> with_sample_weights(data, range(len(data.y_train))).y_train.shape
    torch.Size([142, 2])
    """
    given = np.asarray(weights)
    place = "data.sample_weights"
    if data.weighted:
        raise DataError(f"{place}: the samples have weights already: give them once")
    if given.shape != (len(data.y_train),):
        shape = " x ".join(map(str, given.shape))
        raise DataError(f"{place} has {shape} numbers for {len(data.y_train)} training samples: give one for each")
    if given.dtype.kind not in "biuf":
        raise DataError(f"{place}: the weights are text, for example '{given[0]}': give numbers")
    bad = np.flatnonzero(~(np.isfinite(given) & (given >= 0)))
    if len(bad):
        raise DataError(
            f"{place}: the weight of training sample {bad[0]} is {given[bad[0]]}: give finite numbers of at least 0"
        )
    if not given.any():
        raise DataError(f"{place}: all weights are 0, nothing would be learned: give some of them a weight")
    mean_one = torch.as_tensor(given / given.mean(dtype=np.float64), dtype=torch.float32, device=data.y_train.device)
    labels = data.y_train.float() if data.y_train.dim() == 2 else data.y_train.float().unsqueeze(1)
    return replace(data, y_train=torch.cat([labels, mean_one.unsqueeze(1)], dim=1), weighted=True)


def unweighted_labels(data: FederatedData) -> torch.Tensor:
    """The labels of the training samples alone, of the type they have without weights."""
    if not data.weighted or data.target == "multilabel":
        return data.y_train[:, :-1] if data.weighted else data.y_train
    return data.y_train[:, 0].long() if data.target == "multiclass" else data.y_train[:, 0]


def require_groups_of_whole_clients(data: FederatedData) -> None:
    """Refuse a client with samples in two groups: each would take it for a client of its own."""
    if data.groups is None:
        return
    for silo in data.silos:
        first = np.zeros(silo.clients, dtype=np.int64)
        first[silo.owners[::-1]] = data.groups[::-1]  # the group of a client's first sample
        elsewhere = np.flatnonzero(first[silo.owners] != data.groups)
        if len(elsewhere):
            client = int(silo.owners[elsewhere[0]])
            raise PartitionError(
                f"client {client} of silo '{silo.name}' has samples in groups {first[client]} and "
                f"{data.groups[elsewhere[0]]}: a client belongs to one group, number the clients of each group apart"
            )


def _require_fitting(silo: SiloData, train: int, test: int, y_validation: torch.Tensor | None) -> None:
    validation = 0 if silo.validation is None else len(silo.validation)
    for what, found, wanted in (
        ("training samples", len(silo.train), train),
        ("owners", len(silo.owners), train),
        ("test samples", len(silo.test), test),
        ("validation samples", validation, 0 if y_validation is None else len(y_validation)),
    ):
        if found != wanted:
            raise PartitionError(
                f"silo '{silo.name}' has {found} {what} for {wanted} labels: give every silo the same samples"
            )
    if silo.test_owners is not None and (len(silo.test_owners) != test or silo.test_owners.max() >= silo.clients):
        raise PartitionError(
            f"silo '{silo.name}' has {len(silo.test_owners)} test_owners up to {silo.test_owners.max()} for {test} "
            f"test samples and {silo.clients} clients: give one per test sample, -1 to {silo.clients - 1}"
        )
    outside = np.flatnonzero((silo.owners < 0) | (silo.owners >= silo.clients))
    if len(outside):
        raise PartitionError(
            f"training sample {outside[0]} of silo '{silo.name}' has the owner {silo.owners[outside[0]]}, its clients "
            f"are 0 to {silo.clients - 1}: number them so, or set clients to {int(silo.owners.max()) + 1}"
        )


def merge_clients(data: FederatedData) -> FederatedData:
    """The same silos, each as a single party (in every group): what FedSGD and FedBCD run on.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> data = federate(load_dataset("wine"), FederationSettings(clients=5), seed=1)
    >>> [silo.clients for silo in merge_clients(data).silos]
    [1, 1]
    """
    owners = np.zeros(len(data.y_train), dtype=np.int64) if data.groups is None else data.groups
    clients = int(owners.max()) + 1
    silos = tuple(
        replace(silo, owners=owners, clients=clients, test_owners=None, client_names=()) for silo in data.silos
    )
    return replace(data, silos=silos, branches=())


def keep_silos(data: FederatedData, names: tuple[str, ...]) -> FederatedData:
    """The same samples with the columns of these silos alone; where the silo with the labels goes, all have them.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> data = federate(load_dataset("wine"), FederationSettings(labels="silo1"), seed=1)
    >>> alone = keep_silos(data, ("silo2",))
    >>> [silo.name for silo in alone.silos], alone.label_silo, len(alone.y_train) == len(data.y_train)
    (['silo2'], None, True)
    """
    known = [silo.name for silo in data.silos]
    if strange := [name for name in names if name not in known]:
        raise PartitionError(
            f"federation.only has '{strange[0]}', which is not a silo: choose among {', '.join(known)}"
        )
    silos = tuple(silo for silo in data.silos if silo.name in names)
    if without := [silo.name for silo in silos if not silo.train[0].numel()]:
        raise PartitionError(f"federation.only has '{without[0]}', which has no columns: leave it out")
    return replace(data, silos=silos, label_silo=data.label_silo if data.label_silo in names else None)


def keep_samples(data: FederatedData, rows: npt.NDArray[np.int64]) -> FederatedData:
    """The same with these training samples alone, in this order; clients that hold none of them are no longer there.

    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> data = federate(load_dataset("wine"), FederationSettings(clients=5), seed=1)
    >>> some = keep_samples(data, np.flatnonzero(data.silos[0].owners < 2))
    >>> [silo.clients for silo in some.silos], len(some.y_train) == len(some.silos[1].train)
    ([2, 5], True)
    """
    index = torch.as_tensor(rows, device=data.y_train.device)
    silos = []
    for silo in data.silos:
        present, owners = np.unique(silo.owners[rows], return_inverse=True)
        train = silo.train.index_select(0, index)
        owners = owners.astype(np.int64)
        silos.append(replace(silo, train=train, owners=owners, clients=len(present), test_owners=None, client_names=()))
    groups = None if data.groups is None else data.groups[rows]
    return replace(data, silos=tuple(silos), y_train=data.y_train.index_select(0, index), groups=groups)
