"""Who belongs to what: groups with their samples and seeds, tiers of groups, silos that are one party, pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from crosshatch.data.federated import FederatedData, keep_samples
from crosshatch.protocol.batches import Ids
from crosshatch.seeds import torch_seed
from crosshatch.topology import Topology


@dataclass(frozen=True)
class Member:
    """A whole vertical federation: its samples and clients numbered anew, and the seeds of its batches and codecs."""

    data: FederatedData
    suffix: str  # of its silos' names
    batch_seed: int
    codec_seed: int


def members_of(data: FederatedData, *, seed: int) -> tuple[Member, ...]:
    """The groups, each with seeds of its own; without groups the whole federation under the run's seed."""
    if data.groups is None:
        return (Member(data, "", seed, seed),)
    return tuple(
        Member(
            replace(keep_samples(data, np.flatnonzero(data.groups == g)), groups=None),
            f"@{g}",
            torch_seed(seed, "group", int(g)),
            torch_seed(seed, "codecs", int(g)),
        )
        for g in np.unique(data.groups)
    )


def tiers_of(groups: int, shape: Sequence[int]) -> tuple[Ids, ...]:
    """For each horizontal tier above the vertical one, outermost first, which of its members each group belongs to.

    `shape` says how groups nest; empty: side by side.

    >>> [tier.tolist() for tier in tiers_of(6, (2, 3))]
    [[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    """
    sizes = shape or (groups,)
    return tuple(np.arange(groups) // prod(sizes[level:]) for level in range(len(sizes)))


def one_party_silos(topology: Topology, clients: Sequence[int]) -> frozenset[int]:
    """Silos whose hub and client are one party, without a link between them.

    >>> sorted(one_party_silos(Topology.parse("H(4) V(2) H(2)"), (1, 5)))
    [0]
    """
    if not (topology.below or topology.above):
        return frozenset(range(len(clients)))
    if topology.above:  # a hospital is one party, its devices have an edge node between them
        return frozenset(j for j, count in enumerate(clients) if count == 1)
    return frozenset()


def pair(data: FederatedData) -> FederatedData:
    """Every client of the silo with the most gets a partner in the others."""
    most = max(data.silos, key=lambda silo: silo.clients)
    division = {name: getattr(most, name) for name in ("owners", "clients", "test_owners", "client_names")}
    return replace(data, silos=tuple(replace(silo, **division) for silo in data.silos))
