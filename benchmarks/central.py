"""Central training as anybody would write it: all blocks in one place, one gradient step a batch, torch's autograd."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from benchmarks.cases import BATCH
from crosshatch.data.federated import FederatedData
from crosshatch.protocol.batches import SeededBatches
from crosshatch.task.fusion import Head
from crosshatch.task.task import Task


class Central:
    """Rounds of `steps` gradient steps on one batch; `piece` rows at a time where the cache is to be spared.

    Convolutions are channels-last, which takes less than two thirds of the time here.
    """

    def __init__(
        self, data: FederatedData, task: Task, *, steps: int, piece: int | None = None, batch: int = BATCH
    ) -> None:
        self.data, self.loss, self.steps = data, task.loss, steps
        self.batch, self.piece = batch, piece or batch
        self.blocks = [copy.deepcopy(block) for block in task.blocks]
        self.images = data.silos[0].train.dim() == 4
        if self.images:
            self.blocks = [block.to(memory_format=torch.channels_last) for block in self.blocks]  # type: ignore[call-overload]
        self.head = copy.deepcopy(task.fusion.module) if isinstance(task.fusion, Head) else None
        modules = self.blocks if self.head is None else [*self.blocks, self.head]
        self.parameters = [p for module in modules for p in module.parameters()]
        self.batches, self.round = SeededBatches(1), 0

    def run_round(self) -> None:
        """Draw the batch, gather its rows, take the steps."""
        ids = torch.as_tensor(self.batches.ids(self.round, 0, self.batch, len(self.data.y_train)))
        self.round += 1
        xs = [silo.train.index_select(0, ids) for silo in self.data.silos]
        if self.images:
            xs = [x.contiguous(memory_format=torch.channels_last) for x in xs]
        y = self.data.y_train.index_select(0, ids)
        for _ in range(self.steps):
            self._step(xs, y)

    def _step(self, xs: list[Tensor], y: Tensor) -> None:
        for parameter in self.parameters:
            parameter.grad = None
        for low in range(0, self.batch, self.piece):
            rows = slice(low, low + self.piece)
            scores = self._scores([x[rows] for x in xs])
            torch.autograd.backward(self.loss.value(scores, y[rows]).sum() / self.batch)
        with torch.no_grad():
            for parameter in self.parameters:
                assert parameter.grad is not None
                parameter.sub_(parameter.grad, alpha=0.1)

    def _scores(self, xs: list[Tensor]) -> Tensor:
        embeddings = [block(x) for block, x in zip(self.blocks, xs, strict=True)]
        if self.head is not None:
            return self.head(torch.cat(embeddings, dim=-1))  # type: ignore[no-any-return]
        scores: Tensor = embeddings[0]
        for embedding in embeddings[1:]:
            scores = scores + embedding
        return scores
