"""The numbers behind `descend`: what is asked of `local`, silo by silo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.anchors import Anchors
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import Part, Problem
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.class_means import find_anchors
from crosshatch.protocol.what_is_known import find_parts
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.inputs import Inputs
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.simulator.vertical.sharing import Frozen
from crosshatch.task.task import Task

Exchanged = tuple[Batch, Frozen]
"""Samples, and what silos know of the others for them."""


@dataclass(frozen=True)
class Descending:
    """Puts problems together."""

    data: FederatedData
    task: Task
    passes: Passes
    inputs: Inputs
    seed: int
    optimising: Optimising | None = None

    @cached_property
    def _anchors(self) -> Anchors | None:
        return find_anchors(self.data, self.task)

    def problems(
        self, starts: Mapping[int, Tensor], exchanged: Sequence[Exchanged], local: LocalSteps
    ) -> dict[int, Problem]:
        """For each silo that starts from these weights: steps on what was exchanged, newest first, part by part."""
        batch, frozen = exchanged[0]
        used, needed = find_parts(local, [len(one.parts) for one, _ in exchanged])
        parts: dict[int, list[Part]] = {j: [] for j in starts}
        for number, s in needed:
            then, known = exchanged[number]
            inputs = self.inputs.of(known, then, s, list(starts), local)
            for j in starts:
                part = Part(self.passes.features(then, j, s), inputs[j], then.held[j][s].counts)
                newest = parts[j][: len(batch.parts)]
                parts[j].append(part if number == 0 else part.at_clients(then.clients[j], batch.clients[j], newest))
        anchors = None if self._anchors is None else self._anchors.for_round(self.seed, batch.round)
        return {
            j: Problem(
                task=self.task, silo=j, parts=tuple(parts[j][-len(used) :]), start=start,
                head=None if self.task.holds_head(j) else frozen.heads.get(j), columns=self.inputs.columns[j],
                local=local, seed=(self.seed, batch.round), numbers=batch.clients[j],
                state=None if self.optimising is None else self.optimising.states(j, batch.clients[j]),
                anchors=anchors if self.task.holds_head(j) else None,
            )
            for j, start in starts.items()
        }  # fmt: skip


def rows_by_part(problems: Mapping[int, Problem]) -> list[Ids]:
    """Samples of each part at every client at work, one silo's behind another's."""
    parts = zip(*(problem.parts for problem in problems.values()), strict=True)
    return [np.concatenate([part.counts for part in of_part]) for of_part in parts]
