"""The numbers behind `descend`: what an exchange told, as the local steps of a silo's clients need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.anchors import Anchors
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.refusals import check_continued
from crosshatch.protocol.what_is_known import check_told, find_parts
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.optimising import Optimising
from crosshatch.simulator.vertical.own_heads import with_own_heads
from crosshatch.simulator.vertical.sharing import Frozen
from crosshatch.task.task import Task

Exchanged = tuple[Batch, Frozen]
"""Samples, and what silos know of the others for them."""


@dataclass(frozen=True)
class Descending:
    """Puts problems together, and the inputs of their losses."""

    data: FederatedData
    task: Task
    passes: Passes
    widths: tuple[int, ...]
    seed: int
    optimising: Optimising | None = None
    anchors: Anchors | None = None  # whose mean the class mean is, in a transfer task

    @cached_property
    def _columns(self) -> list[tuple[int, int]]:
        """Where each silo's embeddings stand in what is joined."""
        return [self.task.fusion.columns(self.widths, j) for j in range(len(self.widths))]

    def problems(
        self, starts: Mapping[int, Tensor], exchanged: Sequence[Exchanged], local: LocalSteps
    ) -> dict[int, Problem]:
        """For each silo that starts from these weights: steps on what was exchanged, newest first, part by part."""
        batch, frozen = exchanged[0]
        used = needed = [(0, 0)]
        if len(exchanged) > 1 or len(batch.parts) > 1:
            used, needed = find_parts(local, [len(one.parts) for one, _ in exchanged])
        parts: dict[int, list[Part]] = {j: [] for j in starts}
        for number, s in needed:
            then, known = exchanged[number]
            xs, y = self.passes.samples(then, list(starts), s)
            inputs = self.inputs(known, then, s, y, list(starts), local)
            for j, x in zip(starts, xs, strict=True):
                part = Part(x, inputs[j], then.held[j][s].counts)
                newest = parts[j][: len(batch.parts)]
                parts[j].append(part if number == 0 else part.at_clients(then.clients[j], batch.clients[j], newest))
        anchors = None if self.anchors is None else self.anchors.for_round(self.seed, batch.round)
        holder = self.task.fusion.holder
        return {
            j: Problem(
                task=self.task, silo=j, parts=tuple(parts[j][-len(used) :]), start=start,
                head=None if j == holder else frozen.heads.get(j), columns=self._columns[j],
                local=local, seed=(self.seed, batch.round), numbers=batch.clients[j],
                state=None if self.optimising is None else self.optimising.states(j, batch.clients[j]),
                anchors=anchors if j == holder else None,
            )
            for j, start in starts.items()
        }  # fmt: skip

    def inputs(
        self, frozen: Frozen, batch: Batch, part: int, y: Tensor, silos: Sequence[int], local: LocalSteps
    ) -> dict[int, LossInputs]:
        """What the losses of these silos' samples of a part need, in the order of their clients; labels y as drawn."""
        told, alike = {}, dict[int, list[int]]()  # silos with labels, those together that have seen the same
        for j in silos:
            if j in frozen.gradients:
                told[j] = LossInputs(gradient=frozen.gradients[j])
            elif j in frozen.derivatives:
                sent = frozen.derivatives[j][part]
                check_told(j, told=sent is not None)
                assert sent is not None
                rows = batch.by_client(j, part, sent)
                told[j] = LossInputs(derivative=rows) if self.task.transfer is None else LossInputs(rest=rows)
            elif j in frozen.seen:
                alike.setdefault(id(frozen.seen[j]), []).append(j)
            else:
                check_told(j, told=False)
        for group in alike.values():
            seen = frozen.seen[group[0]]
            every = [seen[j].rows[part] if j in seen else frozen.own[j][part] for j in range(len(self.widths))]
            for j, rest in zip(group, self.task.fusion.others(every, group), strict=True):
                order = batch.held[j][part].order
                mine, others = (one if order is None else one.index_select(0, order) for one in (y, rest))
                told[j] = LossInputs(y=mine, rest=others)
                if self.task.transfer is not None:
                    told[j] = self._components(told[j], j, frozen)
        if local.anticipation == 1 and not local.continued:
            return told
        return {j: replace(one, start=self._start(one, frozen, batch, part, j, local)) for j, one in told.items()}

    def _components(self, inputs: LossInputs, silo: int, frozen: Frozen) -> LossInputs:
        """What a silo of a transfer task makes of the other's embeddings, Phi_A and the labels."""
        assert self.task.transfer is not None
        assert inputs.rest is not None
        assert inputs.y is not None
        other = inputs.rest[:, slice(*self._columns[1 - silo])]
        if self.task.holds_head(silo):
            return LossInputs(y=inputs.y, rest=other)
        return LossInputs(rest=self.task.transfer.components(other, frozen.heads[silo], inputs.y))

    def _start(
        self, inputs: LossInputs, frozen: Frozen, batch: Batch, part: int, silo: int, local: LocalSteps
    ) -> Tensor | None:
        """Where the silo stood at the exchange, in a transfer task both sides; None for steps that do not look back."""
        task, sent = self.task, inputs.derivative is not None
        if inputs.gradient is not None or not (local.continued if sent else local.anticipation != 1):
            return None
        own = frozen.own[silo][part]
        if task.transfer is not None:
            class_mean = frozen.heads[silo] if task.holds_head(silo) else None
            sides = inputs.sides(task.transfer, batch.by_client(silo, part, own), class_mean)
            return task.transfer.starting_point(sides)
        if sent:
            check_continued(head=task.head is not None)
        elif task.head is not None:
            assert inputs.rest is not None
            joined = task.fusion.join(own, batch.as_drawn(silo, part, inputs.rest), self._columns[silo])
            with torch.no_grad():
                own = with_own_heads(task.apply_head, frozen.heads[silo], [joined], batch, silo, part)
        return batch.by_client(silo, part, own)


def rows_by_part(problems: Mapping[int, Problem]) -> list[Ids]:
    """Samples of each part at every client at work, one silo's behind another's."""
    parts = zip(*(problem.parts for problem in problems.values()), strict=True)
    return [np.concatenate([part.counts for part in of_part]) for of_part in parts]
