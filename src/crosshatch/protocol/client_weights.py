"""How much each client counts in its silo's average."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.protocol.batches import Ids
from crosshatch.protocol.names import ClientWeights


def client_weights(holders: Mapping[int, tuple[Ids, int, Ids]], weights: ClientWeights) -> dict[int, Tensor]:
    """By silo the weights of its clients at work.

    `holders` are by silo who holds each sample, how many clients there are, and which of them are at work.
    """
    return {
        j: torch.as_tensor(everyones_weights(owners, total, at_work, weights)[at_work])
        for j, (owners, total, at_work) in holders.items()
    }


def counted_together(owners: Ids, total: int, at_work: Ids, weights: ClientWeights) -> int:
    """How much all clients of a silo count together, beside those of the same silo in other groups.

    >>> [counted_together(np.array([0, 1, 1, 2]), 3, np.array([1, 2]), by) for by in ("equal", "samples", "at_work")]
    [3, 4, 2]
    """
    return {"equal": total, "samples": len(owners), "at_work": len(at_work)}[weights]


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
