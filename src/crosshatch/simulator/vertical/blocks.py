"""The silos' blocks as a round hands them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.problem import Problem
from crosshatch.protocol.batches import Ids


@dataclass(frozen=True)
class Blocks:
    """Weights of every silo: `base[j]` (p,) at its hub, and what its clients have made of it in this round.

    `branches[j]` (innermost branches, p) is where branches below the hub stand within a round; empty: as the hub.
    `received[j]` is what clients got of it where a codec stood in between, (p,) or one for each innermost branch;
    empty: they got just that. `sent_to[j]` are the clients that got it; empty: nobody yet. `moved` has the silos whose
    clients took steps since, with these steps, oldest first: each client stands where the last that were its own led.
    """

    base: tuple[Tensor, ...]
    branches: tuple[Tensor, ...] = ()
    received: tuple[Tensor, ...] = ()
    sent_to: tuple[Ids, ...] = ()
    moved: Mapping[int, tuple[Problem, ...]] = field(default_factory=dict)


def rows_of(wanted: Ids, clients: Ids, rows: Tensor, start: Tensor) -> Tensor:
    """The blocks (wanted, p) of some clients: those among `clients` have `rows`, all others their `start`.

    >>> rows_of(np.array([1, 2]), np.array([0, 2]), torch.tensor([[5.0], [7.0]]), torch.zeros(1)).tolist()
    [[0.0], [7.0]]
    """
    if wanted is clients or np.array_equal(wanted, clients):
        return rows
    place = np.minimum(np.searchsorted(clients, wanted), len(clients) - 1)
    found = torch.as_tensor(clients[place] == wanted, device=rows.device).unsqueeze(1)
    return torch.where(found, rows.index_select(0, torch.as_tensor(place, device=rows.device)), start)
