"""What the simulator keeps for speed alone, in one table: emptied at any moment, it changes no number beyond rounding.

Samples are gathered once for a batch, and the forward pass of an exchange serves the first local step, which begins
with the same pass. Both are found again by the batch they belong to, a pass also by the very weights it was made with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.forward import KeptPass
from crosshatch.local.problem import Problem
from crosshatch.protocol.what_is_known import Samples
from crosshatch.simulator.vertical.batch import Batch


@dataclass
class _OfBatch:
    """What is gathered for one batch; holding its samples keeps their identity from being another's."""

    samples: Samples
    features: dict[tuple[int, int], Tensor] = field(default_factory=dict)  # by silo and part, in its clients' order
    labels: dict[int, Tensor] = field(default_factory=dict)  # by part, in the batch's order


@dataclass
class Passes:
    """Of one federation; samples are kept for the last `window` batches, passes for the newest of each silo."""

    data: FederatedData
    window: int = 1
    # Of the round: by silo its newest pass, with the samples that passed, the first part of a batch; and by a problem's
    # identity the blocks and states that came out of its steps, for whoever asks for them again.
    kept: dict[int, tuple[Tensor, KeptPass]] = field(default_factory=dict)
    blocks: dict[int, tuple[Problem, Tensor, Tensor]] = field(default_factory=dict)
    _gathered: dict[int, _OfBatch] = field(default_factory=dict)  # by the identity of the samples, oldest first

    def clear(self) -> None:
        for kept in (self.kept, self.blocks, self._gathered):
            kept.clear()

    def _of(self, batch: Batch) -> _OfBatch:
        key = id(batch.parts)
        if key not in self._gathered:
            if len(self._gathered) >= self.window:
                del self._gathered[next(iter(self._gathered))]
            self._gathered[key] = _OfBatch(batch.parts)
        return self._gathered[key]

    def samples(self, batch: Batch, silos: Sequence[int], part: int) -> tuple[list[Tensor], Tensor]:
        """By silo the samples of a part (n, ...), in the order of its clients; and the labels, as they were drawn."""
        known, y = self._of(batch), self.data.y_train
        missing = [j for j in silos if (j, part) not in known.features]
        if missing or part not in known.labels:
            ids = torch.from_numpy(batch.parts[part]).to(y.device)
            known.labels[part] = y if batch.all_in_order else y.index_select(0, ids)
            for j in missing:
                train, order = self.data.silos[j].train, batch.held[j][part].order
                as_it_is = batch.all_in_order and order is None
                mine = ids if order is None else ids.index_select(0, order)
                known.features[j, part] = train if as_it_is else train.index_select(0, mine)
        return [known.features[j, part] for j in silos], known.labels[part]

    def gather(self, batch: Batch, silos: Sequence[int]) -> tuple[Tensor, list[Tensor]]:
        """The first part's samples of G silos which have one shape, each in its own order: (G, n, ...), and by silo."""
        if len(silos) == 1:
            mine, _ = self.samples(batch, silos, 0)
            return mine[0].unsqueeze(0), mine
        known, trains = self._of(batch).features, [self.data.silos[j].train for j in silos]
        ids = torch.from_numpy(batch.parts[0]).to(trains[0].device)
        room = trains[0].new_empty((len(silos), len(ids), *trains[0].shape[1:]))
        mine = list(room.unbind(0))
        for j, train, x in zip(silos, trains, mine, strict=True):
            order = batch.held[j][0].order
            torch.index_select(train, 0, ids if order is None else ids.index_select(0, order), out=x)
            known[j, 0] = x
        return room, mine

    def find(self, problems: Sequence[Problem]) -> list[KeptPass | None]:
        """By problem the pass that the first local step begins with: of the same samples, under the same weights."""
        found: list[KeptPass | None] = []
        for problem in problems:
            x, kept = self.kept.get(problem.silo, (None, None))
            begins = x is problem.parts[0].x and problem.local.first % len(problem.parts) == 0
            same = kept is not None and kept.start is problem.start and problem.state is None
            found.append(kept if begins and same else None)
        return found
