"""What a silo sent of all samples in all rounds as one matrix, and what is missing in it put in.

A silo with a linear block sends one number per sample and round that is the same few columns of its own, times weights
that change: the matrix of all samples and rounds has no larger rank than the silo has columns, and one for the bias.
So what batches left out follows from the rest, once there is enough of it. Of other blocks it follows nearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosshatch.audit.other_data import Matrix
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.listening import Heard

SAMPLES = 3000  # that are looked at, at most, drawn from all
NUMBERS = 400  # per sample that are put in or used, at most, spread over all rounds
_SCORES = 2000  # the same of those that are used as they were sent
MOST = 64  # the rank up to which what is missing is put in: time and memory go with its square
_RIDGES = 28
_SWEEPS = 10  # with each


@dataclass(frozen=True)
class Sent:
    """All a silo sent of `samples` (m,), as `directions` (m, r) of mean square 1, each with its size (r,).

    `share` is how much of the matrix of all samples and rounds was sent; the rest was put in. `numbers` (m, k) are what
    was sent, with gaps (nan).
    """

    samples: Ids
    directions: Matrix
    sizes: Matrix
    share: float
    numbers: Matrix


def all_rounds(
    messages: Sequence[Heard], silo: int, *, rank: int, linear: bool, precision: str, draw: np.random.Generator
) -> Sent | None:
    """What a silo sent in all rounds, of rank at most `rank`; None where it sent nothing.

    What is missing of a block that is not `linear` or wider than `MOST`, or of which too little was sent, is put in
    roughly.
    """
    heard = [one for one in messages if one.exchange == "share" and one.sender == silo]
    if not heard:
        return None
    heard = heard[:: max(1, -(-len(heard) * heard[0].values.shape[1] // (_SCORES if linear else NUMBERS)))]
    samples = np.unique(np.concatenate([one.ids for one in heard]))
    if len(samples) > SAMPLES:
        samples = np.sort(draw.choice(samples, SAMPLES, replace=False))
    blocks = []
    for one in heard:
        place = np.searchsorted(samples, one.ids).clip(max=len(samples) - 1)
        here = samples[place] == one.ids
        block = np.full((len(samples), one.values.shape[1]), np.nan)
        block[place[here]] = one.values.double().numpy()[here]
        blocks.append(block)
    numbers = np.hstack(blocks)
    moving = (np.nan_to_num(numbers) != 0).any(axis=0)  # a block that begins at zero tells nothing at first
    numbers = numbers[:, moving]
    if not numbers.size:
        return None
    numbers /= np.sqrt(np.nanmean(numbers**2, axis=0))
    width = heard[0].values.shape[1]  # all numbers of a message, of some of the messages
    every = -(-numbers.shape[1] // NUMBERS) if linear else 1
    values = numbers[:, np.arange(numbers.shape[1]) // width % every == 0]
    there = ~np.isnan(values)
    share = float((~np.isnan(numbers)).mean())
    if share < 1:
        counts = there.sum(axis=1)
        exact = linear and rank <= MOST and float((counts > rank).mean()) > 0.5
        often = counts > (rank if exact else -1 if linear else 0)  # of others too little is known
        rank = rank if exact else min(rank, MOST, max(2, int(np.median(counts)) // 2))
        samples, values, there, numbers = samples[often], values[often], there[often], numbers[often]
        least = 1e-9 if exact else 1e-2
        values = complete(np.where(there, values, 0.0), there, min(rank, *values.shape), least)
    left, sizes, _ = np.linalg.svd(values, full_matrices=False)
    count = int((sizes[:rank] > 10 * float(np.finfo(precision).eps) * sizes[0]).sum())
    return Sent(samples, left[:, :count] * np.sqrt(len(left)), sizes[:count] / sizes[0], share, numbers)


def complete(values: Matrix, there: npt.NDArray[np.bool_], rank: int, least: float = 1e-9) -> Matrix:
    """The matrix (m, k) of this rank that agrees with the values that are there: rows and columns in turns.

    A ridge holds both down at first, so that large directions are found before small ones, and fades to the `least`.
    """
    counts = there.astype(np.float64)
    left, sizes, right = np.linalg.svd(values / max(there.mean(), 1e-9), full_matrices=False)
    one: Matrix = left[:, :rank] * np.sqrt(sizes[:rank])
    other: Matrix = right[:rank].T * np.sqrt(sizes[:rank])
    for ridge in np.geomspace(1, least, _RIDGES).tolist():
        for _ in range(_SWEEPS):
            one = nearest(values, counts, other, ridge)
            other = nearest(values.T, counts.T, one, ridge)
    found: Matrix = np.where(there, values, one @ other.T)
    return found


def nearest(values: Matrix, counts: Matrix, other: Matrix, ridge: float) -> Matrix:
    """For each row of the values (m, k) the combination (m, r) of `other` (k, r) that is nearest where counts are 1."""
    rank = other.shape[1]
    pairs = (other[:, :, None] * other[:, None, :]).reshape(len(other), rank * rank)
    grams = (counts @ pairs).reshape(-1, rank, rank) + (ridge + 1e-12) * np.eye(rank)
    return np.asarray(np.linalg.solve(grams, ((values * counts) @ other)[..., None])[..., 0], dtype=np.float64)
