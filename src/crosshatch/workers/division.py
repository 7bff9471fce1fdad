"""Fixed pieces of clients: sums are taken piece by piece, in one order, so that bits do not depend on who computes.

A silo's rows lie piece by piece, in each piece client by client. Whoever asks for them knows rows by their place in
this order; which features are there only the worker knows that holds the piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.forward import BATCH_ROWS

Ids = npt.NDArray[np.int64]
_AT_ONCE = 2**20  # samples, to spare memory


@dataclass(frozen=True)
class Run:
    """Some clients at work of one piece: the places `low` to `high` among those of their silo."""

    piece: int
    low: int
    high: int


@dataclass(frozen=True)
class Division:
    """How training samples lie in pieces: by silo the place (n,) of each sample, and where each piece begins.

    Samples to be scored may lie behind them.
    """

    places: tuple[Tensor, ...]
    edges: tuple[Ids, ...]  # (pieces + 1,), and the end of every further piece
    first: tuple[Ids, ...]  # the place of each client's first sample (clients,)
    pieces_of: tuple[Ids, ...]  # the piece of each client (clients,), -1 of one without samples

    def runs(self, silo: int, places: Ids) -> list[Run]:
        """Clients at work in their order, cut into those of one piece; `places` has that of a row of each."""
        piece = np.searchsorted(self.edges[silo], places, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(piece)]
        return [Run(int(piece[low]), low, high) for low, high in pairwise(cuts) if high > low]

    def samples(self, silo: int) -> Ids:
        """The numbers of the samples in the order in which a silo's rows lie."""
        places = self.places[silo].numpy()
        order = np.empty(len(places), dtype=places.dtype)
        order[places] = np.arange(len(order), dtype=places.dtype)
        return order


def divide(owners: Sequence[Ids], groups: Ids | None, pieces: int, others: Sequence[int] = ()) -> Division:
    """Cut the clients of each silo (and group) into pieces with about as many rows each.

    Clients stay in their order; where one alone makes up a piece or more, silos begin at different pieces, so that they
    are not all with one worker. So many test samples, and `others`, lie behind in as many pieces for each kind.

    >>> owners = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> divide([owners, np.zeros(8, dtype=np.int64)], None, 2).edges
    (array([0, 4, 8]), array([0, 8, 8]))
    """
    places, edges, firsts, pieces_of = [], [], [], []
    behind = _ends(others, pieces)
    of_sample = None if groups is None else np.unique(groups, return_inverse=True)[1]
    kinds = len(owners) * (1 if of_sample is None else int(of_sample.max(initial=0)) + 1)
    for j, mine in enumerate(owners):
        rows = np.zeros(int(mine.max(initial=-1)) + 1, dtype=np.int64)
        for some in np.array_split(mine, 1 + len(mine) // _AT_ONCE):
            rows += np.bincount(some, minlength=len(rows))
        group = np.zeros(len(rows), dtype=np.int64)
        if of_sample is not None:
            group[mine] = of_sample
        piece = np.zeros(len(rows), dtype=np.int64)
        for g in np.unique(group).tolist():
            members = np.flatnonzero(group == g)
            middle = np.cumsum(rows[members]) - rows[members] / 2
            found = np.minimum(pieces * middle / max(1, rows[members].sum()), pieces - 1).astype(np.int64)
            piece[members] = (found + (j * kinds // len(owners) + g) * pieces // kinds) % pieces
        order = np.argsort(piece, kind="stable")
        first = np.empty(len(rows), dtype=np.int64)  # of each client
        first[order] = np.cumsum(rows[order]) - rows[order]
        places.append(torch.from_numpy(_places(mine, first, sum(others))))
        ends = np.bincount(piece, weights=rows, minlength=pieces).cumsum().astype(np.int64)
        edges.append(np.concatenate([[0], ends, len(mine) + behind]))
        firsts.append(first)
        pieces_of.append(np.where(rows > 0, piece, -1))
    return Division(tuple(places), tuple(edges), tuple(firsts), tuple(pieces_of))


def _ends(others: Sequence[int], pieces: int) -> Ids:
    """Where the pieces of samples to be scored end, counted from the first; what is scored at once is never cut."""
    ends = [np.zeros(1, dtype=np.int64)]
    for count in others:
        size = -(-count // (pieces * BATCH_ROWS)) * BATCH_ROWS
        ends.append(ends[-1][-1] + np.minimum(size * np.arange(1, pieces + 1), count))
    return np.concatenate(ends)[1:]


def _places(owners: Ids, first: Ids, others: int) -> npt.NDArray[np.int32]:
    """Where each sample (n,) lies if clients' samples begin at `first`, and so many others behind them as they come."""
    count, free = len(owners), first.copy()
    found = np.empty(count + others, dtype=np.int32)
    for low in range(0, count, _AT_ONCE):
        some = owners[low : low + _AT_ONCE]
        found[low : low + len(some)] = next_places(some, free)
    found[count:] = np.arange(count, count + others)
    return found


def next_places(owners: Ids, free: Ids) -> Ids:
    """Where further samples (n,) lie, each client's in their order from its place in `free` (clients,) on."""
    clients, counts = np.unique(owners, return_counts=True)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.empty(len(owners), dtype=np.int64)
    found[np.argsort(owners, kind="stable")] = np.repeat(free[clients], counts) + within
    free[clients] += counts
    return found
