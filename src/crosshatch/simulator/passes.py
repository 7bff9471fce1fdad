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
    ids: dict[int, Tensor] = field(default_factory=dict)  # by part


@dataclass
class Passes:
    """Of one federation; samples are kept for the last `window` batches, passes for the newest of each silo."""

    data: FederatedData
    window: int = 1
    _gathered: dict[int, _OfBatch] = field(default_factory=dict)  # by the identity of the samples, oldest first
    _passes: dict[int, tuple[Tensor, KeptPass]] = field(default_factory=dict)  # by silo, with the samples that passed
    _blocks: dict[int, tuple[Problem, Tensor]] = field(default_factory=dict)  # by the identity of the problem

    def clear(self) -> None:
        """Keep nothing."""
        self._gathered.clear()
        self.end_round()

    def end_round(self) -> None:
        """Only samples serve another round."""
        self._passes.clear()
        self._blocks.clear()

    def _of(self, batch: Batch) -> _OfBatch:
        key = id(batch.parts)
        if key not in self._gathered:
            if len(self._gathered) >= self.window:
                del self._gathered[next(iter(self._gathered))]
            self._gathered[key] = _OfBatch(batch.parts)
        return self._gathered[key]

    def _ids(self, batch: Batch, part: int) -> Tensor:
        known = self._of(batch).ids
        if part not in known:
            known[part] = torch.from_numpy(batch.parts[part]).to(self.data.y_train.device)
        return known[part]

    def _ids_by_client(self, batch: Batch, silo: int, part: int) -> Tensor:
        ids, order = self._ids(batch, part), batch.held[silo][part].order
        return ids if order is None else ids.index_select(0, order)

    def labels(self, batch: Batch, part: int) -> Tensor:
        """Of a part, in the batch's order."""
        return self.data.y_train if batch.whole else self.data.y_train.index_select(0, self._ids(batch, part))

    def features(self, batch: Batch, silo: int, part: int) -> Tensor:
        """A silo's samples of a part (n, ...), in the order of its clients."""
        known, train = self._of(batch).features, self.data.silos[silo].train
        if (silo, part) not in known:
            as_they_are = batch.whole and batch.held[silo][part].order is None
            known[silo, part] = train if as_they_are else train.index_select(0, self._ids_by_client(batch, silo, part))
        return known[silo, part]

    def gather(self, batch: Batch, silos: Sequence[int]) -> Tensor:
        """The first part's samples (G, n, ...) of G silos whose samples have one shape, each in its own order."""
        known, trains = self._of(batch).features, [self.data.silos[j].train for j in silos]
        room = trains[0].new_empty((len(silos), len(batch.parts[0]), *trains[0].shape[1:]))
        for j, train, x in zip(silos, trains, room.unbind(0), strict=True):
            torch.index_select(train, 0, self._ids_by_client(batch, j, 0), out=x)
            known[j, 0] = x
        return room

    def keep(self, batch: Batch, silo: int, kept: KeptPass | None) -> None:
        """The pass of a batch's first part, whose samples were gathered; one from before makes room for it."""
        self._passes.pop(silo, None)
        if kept is not None:
            self._passes[silo] = self._of(batch).features[silo, 0], kept

    def find(self, problem: Problem) -> KeptPass | None:
        """The pass that the first local step begins with: of the same samples, under the same weights."""
        x, kept = self._passes.get(problem.silo, (None, None))
        begins = x is problem.parts[0].x and problem.local.first % len(problem.parts) == 0
        return kept if begins and kept is not None and kept.start is problem.start else None

    def keep_blocks(self, problem: Problem, blocks: Tensor) -> None:
        """What came out of local steps, for whoever asks for it again."""
        self._blocks[id(problem)] = problem, blocks

    def find_blocks(self, problem: Problem) -> Tensor | None:
        """The clients' blocks after these local steps."""
        return self._blocks.get(id(problem), (None, None))[1]
