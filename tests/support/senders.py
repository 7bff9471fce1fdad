"""Texts in which some silos do not send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Batch, Blocks, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task
from crosshatch.topology import Topology


@dataclass(frozen=True)
class Absences:
    """All silos move after each of several exchanges, of which the later ones have some senders only.

    In `to` each exchange but the first is to one silo alone.
    """

    senders: tuple[tuple[int, ...], ...]
    to: tuple[int | None, ...] = ()
    batch_size: int | None = 6
    parts: int = 1
    tiers: str = "V(2) H(2)"
    local_steps: int = 2
    step_size: float = 0.3

    @property
    def topology(self) -> Topology:
        return Topology.parse(self.tiers)

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.draw_batch(self.batch_size, round=r, parts=self.parts)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        blocks = fed.descend(blocks, batch, frozen, LocalSteps(2, self.step_size))
        receivers = self.to or (None,) * len(self.senders)
        for some, to in zip(self.senders, receivers, strict=True):
            frozen = fed.share(fed.embed(blocks, batch), batch, known=frozen, senders=some, to=to)
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(2, self.step_size), only=to)
        blocks = fed.average(blocks, batch)
        return fed.average_groups(blocks, round=r) if self.topology.above else blocks


def simulator(
    data: FederatedData, task: Task, algorithm: Any, *, seed: int, codecs: Mapping[str, AnyCodec]
) -> Simulator:
    return Simulator(data, task, algorithm, seed=seed, codecs=codecs, precision=torch.float64, threads=1)
