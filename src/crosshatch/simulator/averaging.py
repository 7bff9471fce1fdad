"""How much each client counts in its silo's average, and what arrives of the blocks where a codec stands in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights
from crosshatch.simulator.batch import Batch, Ids
from crosshatch.simulator.coding import Coding
from crosshatch.simulator.values import Blocks


def client_weights(owners: Ids, total: int, at_work: Ids, weights: ClientWeights) -> Tensor:
    """Weights of the clients at work, of `total` clients that hold the samples as `owners` says."""
    if weights == "samples" and total > 1:
        return torch.as_tensor(everyones_weights(owners, total, at_work, weights)[at_work])
    return _equal(len(at_work), len(at_work) if weights == "at_work" else total)


@lru_cache(maxsize=64)
def _equal(at_work: int, counted: int) -> Tensor:
    return torch.full((at_work,), 1.0 / counted, dtype=torch.float64)


def everyones_weights(owners: Ids, total: int, at_work: Ids, weights: ClientWeights) -> npt.NDArray[np.float64]:
    """Weights of all clients of a silo, those not at work included.

    >>> everyones_weights(np.array([0, 1, 1, 2]), 3, np.array([1, 2]), "samples")
    array([0.25, 0.5 , 0.25])
    """
    counted = np.ones(total)
    if weights == "samples":
        counted = np.bincount(owners, minlength=total).astype(np.float64)
    elif weights == "at_work":
        counted = np.bincount(at_work, minlength=total).astype(np.float64)
    share: npt.NDArray[np.float64] = counted / counted.sum()
    return share


def with_idle(total: Tensor, start: Tensor, idle: float) -> Tensor:
    """A weighted sum (p,), and the clients not at work with the block they would have started from; in place."""
    return total.add_(start, alpha=idle) if idle > 1e-9 else total  # what is left of 1 may be rounding


def coded_sums(
    blocks: Blocks, batch: Batch, shares: Mapping[int, Tensor], coding: Coding, clients: Sequence[int]
) -> dict[int, Tensor]:
    """Weighted sums of what arrives of the clients' blocks: each sends how far it moved from the block it got."""
    assert blocks.moved is not None
    sums = {}
    for j, rows in blocks.moved.rows().items():
        if not coding.travels("average", j):
            sums[j] = shares[j].to(rows) @ rows
            continue
        start, ids = blocks.at_clients(j), batch.clients[j]
        where = blocks.moved.problems[j].task.trained[j]
        moves = coding.vectors("average", str(j), rows - start, ids, clients[j], round=batch.round, where=where)
        sums[j] = shares[j].to(rows) @ (moves + start)
    return sums
