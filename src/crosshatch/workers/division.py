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

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """Some clients at work of one piece: the places `low` to `high` among those of their silo."""

    piece: int
    low: int
    high: int


@dataclass(frozen=True)
class Division:
    """How training samples lie in pieces: by silo the place (n,) of each sample, and where each piece begins."""

    places: tuple[Tensor, ...]
    edges: tuple[Ids, ...]  # (pieces + 1,)

    @property
    def pieces(self) -> int:
        return len(self.edges[0]) - 1

    def runs(self, silo: int, places: Ids) -> list[Run]:
        """Clients at work in their order, cut into those of one piece; `places` has that of a row of each."""
        piece = np.searchsorted(self.edges[silo], places, side="right") - 1
        cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(piece)]
        return [Run(int(piece[low]), low, high) for low, high in pairwise(cuts) if high > low]

    def samples(self, silo: int) -> Ids:
        """The numbers of the samples in the order in which a silo's rows lie."""
        order = np.empty(len(self.places[silo]), dtype=np.int64)
        order[self.places[silo].numpy()] = np.arange(len(order))
        return order


def divide(owners: Sequence[Ids], groups: Ids | None, pieces: int) -> Division:
    """Cut the clients of each silo (and group) into pieces with about as many rows each.

    Clients stay in their order; where one alone makes up a piece or more, silos begin at different pieces, so that they
    are not all with one worker.

    >>> owners = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> divide([owners, np.zeros(8, dtype=np.int64)], None, 2).edges
    (array([0, 4, 8]), array([0, 8, 8]))
    """
    places, edges = [], []
    of_sample = (
        np.zeros(len(owners[0]), dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    kinds = len(owners) * (int(of_sample.max(initial=0)) + 1)
    for j, mine in enumerate(owners):
        rows = np.bincount(mine)
        group = np.zeros(len(rows), dtype=np.int64)
        group[mine] = of_sample
        piece = np.zeros(len(rows), dtype=np.int64)
        for g in np.unique(group).tolist():
            members = np.flatnonzero(group == g)
            middle = np.cumsum(rows[members]) - rows[members] / 2
            found = np.minimum(pieces * middle / max(1, rows[members].sum()), pieces - 1).astype(np.int64)
            piece[members] = (found + (j * kinds // len(owners) + g) * pieces // kinds) % pieces
        order = np.argsort(piece[mine] * len(rows) + mine, kind="stable")
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        places.append(torch.from_numpy(place))
        edges.append(np.concatenate([[0], np.cumsum(np.bincount(piece[mine], minlength=pieces))]))
    return Division(tuple(places), tuple(edges))
