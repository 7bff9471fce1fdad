"""Which client holds which sample: owners arrays (n,) of client numbers 0..clients-1.

All are pure functions of their arguments and the generator, and none loops over samples or clients.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crosshatch.errors import PartitionError
from crosshatch.seeds import shuffled

Owners = npt.NDArray[np.int64]
Labels = npt.NDArray[Any]


def client_sizes(n: int, clients: int, sizes: Sequence[int] | None = None) -> Owners:
    """Samples per client (clients,): as given, or equal up to one sample, the larger ones first.

    >>> client_sizes(10, 4).tolist()
    [3, 3, 2, 2]
    """
    if clients < 1:
        raise PartitionError(f"{clients} clients: a silo needs at least 1")
    if sizes is not None:
        if len(sizes) != clients:
            raise PartitionError(f"{len(sizes)} sizes for {clients} clients: give one size per client")
        if min(sizes) < 0:
            raise PartitionError(f"a size of {min(sizes)} samples: sizes must not be negative")
        if sum(sizes) != n:
            raise PartitionError(f"sizes sum to {sum(sizes)} but there are {n} training samples: make them sum to {n}")
        return np.asarray(sizes, dtype=np.int64)
    if clients > n:
        raise PartitionError(f"{clients} clients for {n} training samples: use at most {n} clients")
    each, more = divmod(n, clients)
    return np.full(clients, each, dtype=np.int64) + (np.arange(clients) < more)


def by_permutation(n: int, clients: int, *, random: np.random.Generator, sizes: Sequence[int] | None = None) -> Owners:
    """Contiguous blocks of a random permutation of the samples, as in the TDCD and HSGD experiments."""
    counts = client_sizes(n, clients, sizes)
    numbers = np.arange(clients, dtype=np.min_scalar_type(clients))
    owners = np.empty(n, dtype=numbers.dtype)
    owners[shuffled(n, random)] = np.repeat(numbers, counts)
    return owners.astype(np.int64)


def by_value(values: Labels) -> tuple[Owners, tuple[str, ...]]:
    """One client for each distinct value, in sorted order; returns the owners and the values as text."""
    distinct, owners = np.unique(values, return_inverse=True)
    return owners.astype(np.int64).reshape(-1), tuple(str(value) for value in distinct.tolist())


def by_dirichlet(y: Labels, clients: int, *, random: np.random.Generator, alpha: float) -> Owners:
    """Each class is spread over the clients in proportions drawn from a symmetric Dirichlet(alpha).

    Small alpha: a client sees few classes; large alpha: all clients look alike. Clients may end up without samples.
    """
    if not alpha > 0:
        raise PartitionError(f"Dirichlet alpha = {alpha}: it must be greater than 0 (0.1 skewed, 100 nearly even)")
    client_sizes(len(y), clients)  # only for its complaints
    owners = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        rows = random.permutation(np.flatnonzero(y == label))
        edges = np.cumsum(random.dirichlet(np.full(clients, alpha)))
        # Position i of the class (in the middle of its cell) belongs to the client in whose share it falls.
        places = (np.arange(len(rows)) + 0.5) / len(rows) * edges[-1]
        owners[rows] = np.minimum(np.searchsorted(edges, places, side="right"), clients - 1)
    return owners


def by_main_labels(
    y: Labels,
    clients: int,
    *,
    random: np.random.Generator,
    main: int = 2,
    share: float = 0.8,
    sizes: Sequence[int] | None = None,
) -> Owners:
    """Each client has `main` main labels that make up `share` of its samples; the rest have other labels (HSGD, V-A).

    Main labels go round the classes in a random order, so each class is main for about as many clients. Where a class
    has too few samples, all its clients get the same part of what they want and fill up with other labels; where the
    other labels run out, main labels fill up.
    """
    classes, coded = np.unique(y, return_inverse=True)
    if not 1 <= main <= len(classes):
        raise PartitionError(
            f"main = {main} labels per client, but there are {len(classes)} classes: use 1..{len(classes)}"
        )
    if not 0 <= share <= 1:
        raise PartitionError(f"main_share = {share}: it must be between 0 and 1")
    counts = client_sizes(len(y), clients, sizes)
    order = random.permutation(len(classes))
    mains = order[(np.arange(clients)[:, None] * main + np.arange(main)) % len(classes)]  # (clients, main)
    wanted = np.rint(share * counts).astype(np.int64)
    quotas = wanted[:, None] // main + (np.arange(main) < (wanted % main)[:, None])

    owners = np.full(len(y), -1, dtype=np.int64)
    for label in range(len(classes)):
        rows = random.permutation(np.flatnonzero(coded == label))
        members, place = np.nonzero(mains == label)
        quota = quotas[members, place]
        if quota.sum() > len(rows):
            quota = quota * len(rows) // quota.sum()
        owners[rows[: quota.sum()]] = np.repeat(members, quota)
    rest = random.permutation(np.flatnonzero(owners < 0))
    room = counts - np.bincount(owners[owners >= 0], minlength=clients)
    owners[rest] = np.repeat(np.arange(clients), room)
    _swap_main_labels_out(owners, rest, coded, mains, random)
    return owners


def within_groups(groups: Owners, divide: Callable[[npt.NDArray[np.int64]], tuple[Owners, int]]) -> tuple[Owners, int]:
    """Divide every group by itself; clients are numbered group after group. `divide(rows) -> owners, clients`."""
    owners = np.empty(len(groups), dtype=np.int64)
    order = np.argsort(groups, kind="stable")
    first = 0
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        part, clients = divide(rows)
        owners[rows] = first + part
        first += clients
    return owners, first


def _swap_main_labels_out(
    owners: Owners,
    rest: npt.NDArray[np.int64],
    coded: npt.NDArray[np.int64],
    mains: npt.NDArray[np.int64],
    random: np.random.Generator,
) -> None:
    """Swap owners among `rest` (in place) until hardly any of them has a main label of its owner.

    A swap is done only if both samples are then at a client for which their label is not main, so sizes stay.
    """

    def misplaced(rows: npt.NDArray[np.int64], at: Owners) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (mains[at] == coded[rows][:, None]).any(axis=1)
        return found

    for _ in range(200):
        wrong = rest[misplaced(rest, owners[rest])]
        if not len(wrong):
            return
        partners = random.permutation(rest)[: len(wrong)]
        # A row may take part in one swap only: drop partners that are themselves wrong.
        keep = ~np.isin(partners, wrong)
        wrong, partners = wrong[keep], partners[keep]
        better = ~misplaced(wrong, owners[partners]) & ~misplaced(partners, owners[wrong])
        a, b = wrong[better], partners[better]
        owners[a], owners[b] = owners[b], owners[a]
