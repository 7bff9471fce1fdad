"""What a client computes by itself: on its samples of its silo, and the labels of those where it has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.anchors import Anchors
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.agreed import Agreed, Batch
from crosshatch.parties.holdings.model import KnownOfOthers, Model
from crosshatch.parties.holdings.steps import Steps, Work
from crosshatch.protocol.batches import Ids


@dataclass
class Client:
    """One party. `ids` (ascending) are its samples' numbers, x (n, ...) their features, y (n,) their labels or None.

    `moments` is its state of the optimiser, where there is one. `anchors` are its samples that a class mean is of,
    where it holds one.
    """

    agreed: Agreed
    silo: int
    number: int
    ids: Ids
    x: Tensor
    y: Tensor | None
    model: Model
    steps: Steps
    moments: Moments | None = None
    anchors: Anchors | None = None
    _gathered: dict[int, tuple[Ids, Tensor]] = field(default_factory=dict, init=False)  # rows of the round, by its ids

    def begin_round(self) -> None:
        """Without moments, unless they are to be carried over."""
        optimiser = self.model.vectors.optimiser
        if self.moments is None or (optimiser is not None and optimiser.state == "reset"):
            self.moments = self.model.vectors.no_moments()
        self._gathered.clear()

    @cached_property
    def _place(self) -> Ids:
        """Where each sample of all stands among its own, -1 for those it has not."""
        place = np.full(self.agreed.samples, -1)
        place[self.ids] = np.arange(len(self.ids))
        return place

    def _mine(self, ids: Ids) -> Tensor:
        """Where those of the ids that it holds stand among its own, in the order given."""
        place = self._place[ids]
        return torch.as_tensor(place[place >= 0])

    def _rows(self, ids: Ids) -> Tensor:
        """Its samples among these, gathered once in a round."""
        if id(ids) not in self._gathered:
            self._gathered[id(ids)] = ids, self.x.index_select(0, self._mine(ids))
        return self._gathered[id(ids)][1]

    def ids_of(self, batch: Batch, part: int | None) -> Ids:
        """Those of the batch (or of one part) that it holds."""
        ids = batch.ids(part)
        return ids[self._place[ids] >= 0]

    def labels(self, batch: Batch, part: int | None = None) -> Tensor:
        assert self.y is not None, "labels are held by another silo"
        return self.y[self._mine(batch.ids(part))]

    def counts(self, batch: Batch) -> list[int]:
        return [len(self._mine(part)) for part in batch.parts]

    def at_work(self, batch: Batch, part: int | None = None) -> bool:
        """Whether it has samples of the batch (or of one part)."""
        return bool((self._place[batch.ids(part)] >= 0).any())

    def know(self, batch: Batch, others: Mapping[int | None, Tensor]) -> tuple[KnownOfOthers, ...]:
        """What it knows of each part with its labels, from rows of all parts (for a head: side by side)."""
        rest = torch.cat([others[j] for j in sorted(others, key=lambda j: j or 0)], dim=1)
        pieces = torch.split(rest, self.counts(batch))
        return tuple(KnownOfOthers(self.labels(batch, s), piece) for s, piece in enumerate(pieces))

    def embed(self, block: Tensor, batch: Batch) -> tuple[Tensor, ...]:
        """Outputs of its block for its samples of each part."""
        seed = self.agreed.seed, batch.round
        return tuple(self.steps.embed(block, self._rows(ids), (*seed, s)) for s, ids in enumerate(batch.parts))

    def head_of(self, block: Tensor, batch: Batch) -> Tensor:
        """The head it would send with a round's embeddings."""
        anchors = self._anchors(batch)
        if anchors is None or anchors.drawn is None:
            return self.model.vectors.head_of(block)
        return self.model.class_mean(block, anchors)

    def _anchors(self, batch: Batch) -> Anchors | None:
        return None if self.anchors is None else self.anchors.for_round(self.agreed.seed, batch.round)

    def components(self, own: Tensor, mean: Tensor, y: Tensor) -> Tensor:
        """In a transfer task what the other silo gets of rows (n, d) where it has no labels: u_A, and y Phi_A."""
        return torch.cat([own, (2 * y - 1)[:, None] * mean], dim=1)

    def descend(
        self,
        block: Tensor,
        exchanged: Sequence[tuple[Batch, Sequence[KnownOfOthers]]],
        head: Tensor | None,
        local: LocalSteps,
    ) -> Tensor:
        """Gradient steps on its own samples; it stays where it is in a step whose part it has nothing of.

        It goes through what was exchanged in turn, newest first, part by part. In the turn of an earlier batch that it
        has nothing of, it takes the first part of the newest that it has samples of.
        """
        newest, every = exchanged[0][0], []
        for batch, known in exchanged:
            every += [(self._rows(ids), one, batch is newest) for ids, one in zip(batch.parts, known, strict=False)]
        mine_first = next((one for one in every if one[2] and len(one[0])), every[0])
        if local.steps == 1:
            every = [every[local.first % len(every)]]
        parts = [one[:2] if one[2] or len(one[0]) else mine_first[:2] for one in every]
        seed, anchors = (self.agreed.seed, newest.round), self._anchors(newest)
        now, self.moments = self.steps.descend(Work(seed, block, parts, head, local, self.moments, anchors))
        return now

    def derivatives(
        self,
        own: Tensor,
        others: Mapping[int | None, Tensor],
        head: Tensor | None,
        y: Tensor,
        silo: int,
        at: Tensor | None,
    ) -> Tensor:
        """Each row's derivative of the loss with respect to a silo's embedding (n, e), at the label's holder.

        For a sum `at` (n, c) is what the others add up to (None: as it was at the round's start). For a head it is the
        silo's new embedding among the `others` of the round's start.
        """
        if head is None:
            return self.model.loss.derivative(own + (others[None] if at is None else at), y)
        every = [own if j == self.silo else others[j] for j in self.agreed.silos]
        leaf = every[silo] = (every[silo] if at is None else at).clone().requires_grad_()
        scores = self.model.apply_head(head, torch.cat(every, dim=1))
        return torch.autograd.grad(self.model.loss.value(scores, y).sum(), leaf)[0]
