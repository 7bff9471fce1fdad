"""Which samples and which clients take part in a round: drawn from the shared seed, so nobody has to ask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from crosshatch.errors import ConfigError
from crosshatch.seeds import generator

Ids = npt.NDArray[np.int64]


class BatchSource(Protocol):
    """Where the ids of a round, and the clients selected for it, come from."""

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        """`size` of `samples` ids for a part of a round."""

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """A fraction of the clients, at least one."""


@dataclass(frozen=True)
class SeededBatches:
    """Drawn without replacement from `(seed, "batch", round, part)`."""

    seed: int

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        """The same ids for everyone who knows the seed."""
        rng = generator(self.seed, "batch", round, part)
        return rng.choice(samples, size, replace=False, shuffle=False).astype(np.int64)

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """The same clients for everyone who knows the seed."""
        count = max(1, int(fraction * clients + 0.5))
        return generator(self.seed, "clients", round).choice(clients, count, replace=False).astype(np.int64)


@dataclass(frozen=True)
class DividedBatches:
    """All samples divided once into fixed batches, which rounds go through in a new order per epoch.

    FedBCD's assumption A2. `division` is the seed of the division, `group` tells groups with the same one apart; every
    round uses so many `parts`.

    >>> batches = DividedBatches(seed=1, division=7)
    >>> epoch = [batches.ids(round, 0, 3, 11).tolist() for round in range(3)]
    >>> sorted(map(len, epoch)), sorted(sum(epoch, [])) == list(range(11))
    ([3, 4, 4], True)
    """

    seed: int
    division: int
    group: int = 0
    parts: int = 1

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        """One of the batches, of `size` samples or up to twice as many."""
        batches = divide(samples, size, seed=self.division, group=self.group)
        epoch, place = divmod(round * self.parts + part, len(batches))
        order: list[int] = generator(self.seed, "order of batches", epoch).permutation(len(batches)).tolist()
        return batches[order[place]]

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """As without a division, which is of samples and not of clients."""
        return SeededBatches(self.seed).clients(round, fraction, clients)


@lru_cache(maxsize=8)
def divide(samples: int, size: int, *, seed: int, group: int = 0) -> tuple[Ids, ...]:
    """As many batches of at least `size` samples as there can be, as even as can be, each in order.

    >>> [len(batch) for batch in divide(11, 3, seed=7)], [len(batch) for batch in divide(11, 6, seed=7)]
    ([4, 4, 3], [11])
    """
    shuffled = generator(seed, "division", group).permutation(samples).astype(np.int64)
    return tuple(np.sort(batch) for batch in np.array_split(shuffled, max(1, samples // size)))


def smallest_batch(samples: int, size: int | None) -> int:
    """How many samples the smallest batch of a division has.

    >>> smallest_batch(1100, 256), smallest_batch(1100, 600), smallest_batch(1100, None)
    (275, 1100, 1100)
    """
    return samples if size is None or size > samples else samples // (samples // size)


@dataclass(frozen=True)
class GivenBatches:
    """A fixed list `rounds[round][part]`, for example of a golden file."""

    rounds: Ids  # (rounds, parts, size), or (rounds, 1, clients) where clients are selected

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:  # noqa: ARG002
        ids: Ids = self.rounds[round, part]
        return ids

    def clients(self, round: int, fraction: float, clients: int) -> Ids:  # noqa: ARG002
        ids: Ids = self.rounds[round, 0]
        return ids


def draw(source: BatchSource, *, samples: int, size: int, round: int, parts: int, first: int) -> tuple[Ids, ...]:
    if size > samples:
        raise ConfigError(
            f"algorithm.batch_size = {size}: more than the {samples} training samples; leave it out to use all of them"
        )
    return tuple(source.ids(round, first + p, size, samples) for p in range(parts))
