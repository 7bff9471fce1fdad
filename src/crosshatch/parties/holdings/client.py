"""What a client computes by itself: on its samples of its silo, and the labels of those where it has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.anchors import Anchors
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.masks import own_masks
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.agreed import Agreed, Batch
from crosshatch.parties.holdings.model import KnownOfOthers, Model
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
    moments: Moments | None = None
    anchors: Anchors | None = None

    def begin_round(self) -> None:
        """Without moments, unless they are to be carried over."""
        optimiser = self.model.vectors.optimiser
        if self.moments is None or (optimiser is not None and optimiser.state == "reset"):
            self.moments = self.model.vectors.no_moments()

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

    def ids_of(self, batch: Batch, part: int | None) -> Ids:
        """Those of the batch (or of one part) that it holds."""
        ids = batch.ids(part)
        return ids[self._place[ids] >= 0]

    def labels(self, batch: Batch, part: int | None = None) -> Tensor:
        """Of its samples in the batch."""
        assert self.y is not None, "labels are held by another silo"
        return self.y[self._mine(batch.ids(part))]

    def counts(self, batch: Batch) -> list[int]:
        """How many samples of each part it has."""
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
        outputs = []
        for s, ids in enumerate(batch.parts):
            with torch.no_grad(), self._masks(batch, s):
                outputs.append(self.model.embed(block, self.x[self._mine(ids)]))
        return tuple(outputs)

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

    def _masks(self, batch: Batch, step: int) -> AbstractContextManager[None]:
        """Its own random numbers, where blocks draw some."""
        seed = (self.agreed.seed, batch.round, step)
        return own_masks(seed, self.silo, self.number) if self.agreed.by_number else nullcontext()

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
        now, newest = block, exchanged[0][0]
        anchors = self._anchors(newest)
        every = [
            (ids, known[s], batch is newest)
            for batch, known in exchanged
            for s, ids in enumerate(batch.parts)
            if s < len(known)
        ]
        mine_first = next((one for one in every if one[2] and len(self._mine(one[0]))), every[0])
        for step in range(local.first, local.first + local.steps):
            ids, known, is_newest = every[step % len(every)]
            if not is_newest and not len(self._mine(ids)):
                ids, known, _ = mine_first
            mine = self._mine(ids)
            if len(mine):
                with self._masks(newest, step):
                    now, self.moments = self.model.step(
                        now, self.x[mine], known, head, local, start=block, moments=self.moments, anchors=anchors
                    )
        if anchors is None:
            return now
        mean = self.model.class_mean(now, anchors, every=True)
        return torch.cat([now[: -len(mean)], mean])

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
