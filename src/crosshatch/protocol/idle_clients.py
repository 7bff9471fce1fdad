"""How much of a silo's average its idle clients are: with small batches and many clients, nearly all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosshatch.data.federated import FederatedData
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.client_weights import everyones_weights
from crosshatch.protocol.names import ClientWeights

FAR = 10
"""How many times the clients at work their idle fellows weigh, where a note is due."""


@dataclass(frozen=True)
class Drawn:
    """The samples of a round: `parts` batches of so many samples each (None: all), or those of some of the clients."""

    batch_size: int | None = None
    parts: int = 1
    fraction: float | None = None


@dataclass(frozen=True)
class Working:
    """Of a silo's clients: how many have samples of a round, and how much of the average these are, as expected."""

    clients: int
    at_work: float
    weight: float


def idle_note(groups: Sequence[FederatedData], drawn: Drawn, weights: ClientWeights) -> str | None:
    """A line about the silo whose idle clients weigh most in any group, if they weigh ten times those at work."""
    if weights == "at_work":
        return None
    most = [max(silo.clients for silo in data.silos) for data in groups]  # a fraction is taken of these
    found = [
        (silo.name, _working(silo.owners, silo.clients, drawn, weights, chosen=silo.clients == most[g]))
        for g, data in enumerate(groups)
        for silo in data.silos
    ]
    name, least = min(found, key=lambda pair: pair[1].weight)
    if 1 - least.weight < FAR * least.weight:
        return None
    return (
        f"a round reaches about {least.at_work:,.0f} of the {least.clients:,} clients of silo '{name}', and with "
        f"algorithm.weights = '{weights}' all others count in its average with the block they started from, which "
        f"shrinks every step to {100 * least.weight:.2g}% of its length: set algorithm.weights = 'at_work'"
    )


def _working(owners: Ids, clients: int, drawn: Drawn, weights: ClientWeights, *, chosen: bool) -> Working:
    if drawn.fraction is not None:  # other silos work on the samples of those who were chosen: at most as few are idle
        share = max(1, int(drawn.fraction * clients + 0.5)) / clients if chosen else 1.0
        return Working(clients, share * clients, share)
    if drawn.batch_size is None:
        return Working(clients, clients, 1.0)
    held = np.bincount(owners, minlength=clients)
    chances = 1 - _none_drawn(held, len(owners), drawn.batch_size) ** drawn.parts
    every: Ids = np.arange(clients)
    return Working(clients, float(chances.sum()), float(everyones_weights(owners, clients, every, weights) @ chances))


def _none_drawn(held: Ids, samples: int, size: int) -> npt.NDArray[np.float64]:
    """For clients that hold so many of the samples, the chance that a batch of this size has none of them."""
    counts, place = np.unique(held, return_inverse=True)
    return np.array([np.maximum(1 - size / (samples - np.arange(n)), 0).prod() for n in counts])[place]
