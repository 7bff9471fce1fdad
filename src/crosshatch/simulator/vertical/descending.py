"""The numbers behind `descend`: what is asked of `local`, silo by silo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.anchors import Anchors
from crosshatch.local.problem import Part, Problem
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.class_means import find_anchors
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.simulator.vertical.sent import KnownBySilo
from crosshatch.simulator.vertical.sharing import Frozen
from crosshatch.task.task import Task

Exchanged = tuple[Batch, Frozen]
"""Samples, and what silos know of the others for them."""


@dataclass(frozen=True)
class Asked:
    """How local steps are to be made; see `Problem`."""

    steps: int
    step_size: float
    first: int
    proximal: float
    anticipation: float
    continued: bool


@dataclass(frozen=True)
class Descending:
    """Puts problems together."""

    data: FederatedData
    task: Task
    widths: tuple[int, ...]
    seed: int
    optimising: Optimising | None = None

    @cached_property
    def _anchors(self) -> Anchors | None:
        return find_anchors(self.data, self.task)

    @cached_property
    def _columns(self) -> list[tuple[int, int]]:
        """Where each silo's embeddings stand in what is joined."""
        return [self.task.fusion.columns(self.widths, j) for j in range(len(self.widths))]

    def problems(
        self, starts: Mapping[int, Tensor], exchanged: Sequence[Exchanged], asked: Asked
    ) -> dict[int, Problem]:
        """For each silo that starts from these weights: steps on what was exchanged, newest first, part by part."""
        batch, frozen = exchanged[0]
        every = [(number, s) for number, (one, _) in enumerate(exchanged) for s in range(len(one.parts))]
        used = every if asked.steps > 1 else [every[asked.first % len(every)]]
        first = used[0] == (0, 0)
        # Who has nothing of an earlier part takes the newest in its place.
        needed = used if used[0][0] == 0 else [*every[: len(batch.parts)], *used]
        known = {
            number: self._known(exchanged[number][1], starts, asked, once=first and asked.steps == 1)
            for number in {number for number, _ in needed}
        }
        parts: dict[int, list[Part]] = {j: [] for j in starts}
        for number, s in needed:
            then = exchanged[number][0]
            x = then.features(list(starts), s, [self.data.silos[j].train for j in starts])
            for j, features in zip(starts, x, strict=True):
                part = Part(features, known[number][j][s], then.held[j][s].counts, then.held[j][s].owners)
                newest = parts[j][: len(batch.parts)]
                parts[j].append(part if number == 0 else part.at_clients(then.clients[j], batch.clients[j], newest))
        problems = {
            j: Problem(
                task=self.task, silo=j, parts=tuple(parts[j][-len(used) :]), start=start,
                head=None if frozen.head is None or self.task.holds_head(j) else frozen.head, columns=self._columns[j],
                steps=asked.steps, step_size=asked.step_size, first=asked.first, proximal=asked.proximal,
                anticipation=asked.anticipation,
                # `at_start` are derivatives of shared labels for one step from where they were taken: they do not go on
                continued=asked.continued and frozen.at_start is None,
                kept_pass=frozen.passes[j] if first else None, seed=(self.seed, batch.round), numbers=batch.clients[j],
                state=None if self.optimising is None else self.optimising.states(j, batch.clients[j]),
            )
            for j, start in starts.items()
        }  # fmt: skip
        return problems if self.task.transfer is None else self._with_anchors(problems, batch.round)

    def _with_anchors(self, problems: dict[int, Problem], round: int) -> dict[int, Problem]:
        """A transfer task's: the class mean moves with its holder's block, and no kept pass has all it depends on."""
        assert self._anchors is not None
        anchors = self._anchors.for_round(self.seed, round)
        return {
            j: replace(problem, kept_pass=None, anchors=anchors if self.task.holds_head(j) else None)
            for j, problem in problems.items()
        }

    def _known(self, frozen: Frozen, starts: Mapping[int, Tensor], asked: Asked, *, once: bool) -> KnownBySilo:
        """What the silos know, and where they stood if steps look back at it."""
        known = frozen.known_to(starts, once=True) if once else frozen.known(list(starts))
        if asked.anticipation == 1 and not asked.continued:
            return known
        stood = frozen.stood(list(starts))
        return {
            j: [replace(inputs, start=start) for inputs, start in zip(known[j], stood[j], strict=True)] for j in known
        }


def rows_by_part(problems: Mapping[int, Problem]) -> list[Ids]:
    """Samples of each part at every client at work, one silo's behind another's."""
    parts = zip(*(problem.parts for problem in problems.values()), strict=True)
    return [np.concatenate([part.counts for part in of_part]) for of_part in parts]
