"""Which samples and which clients take part in a round: drawn from the shared seed, so nobody has to ask."""

from __future__ import annotations

from dataclasses import dataclass
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
        ...

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """A fraction of the clients, at least one."""
        ...


@dataclass(frozen=True)
class SeededBatches:
    """Drawn without replacement from `(seed, "batch", round, part)`."""

    seed: int

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        """The same ids for everyone who knows the seed."""
        rng = generator(self.seed, "batch", round, part)
        drawn: Ids = rng.choice(samples, size, replace=False, shuffle=False).astype(np.int64)
        return drawn

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """The same clients for everyone who knows the seed."""
        count = max(1, int(fraction * clients + 0.5))
        drawn: Ids = generator(self.seed, "clients", round).choice(clients, count, replace=False).astype(np.int64)
        return drawn


@dataclass(frozen=True)
class GivenBatches:
    """A fixed list `rounds[round][part]`, for example of a golden file."""

    rounds: Ids  # (rounds, parts, size), or (rounds, 1, clients) where clients are selected

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:  # noqa: ARG002
        """The listed ids."""
        ids: Ids = self.rounds[round, part]
        return ids

    def clients(self, round: int, fraction: float, clients: int) -> Ids:  # noqa: ARG002
        """The listed clients."""
        ids: Ids = self.rounds[round, 0]
        return ids


def draw(source: BatchSource, *, samples: int, size: int, round: int, parts: int, first: int) -> tuple[Ids, ...]:
    """The ids of each part."""
    if size > samples:
        raise ConfigError(
            f"algorithm.batch_size = {size}: more than the {samples} training samples; leave it out to use all of them"
        )
    return tuple(source.ids(round, first + p, size, samples) for p in range(parts))
