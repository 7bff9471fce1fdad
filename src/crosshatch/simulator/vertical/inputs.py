"""What an exchange told a silo's clients, as their local steps need it: the inputs of a loss for their own samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import LossInputs
from crosshatch.protocol.refusals import check_continued
from crosshatch.protocol.what_is_known import check_told
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.own_heads import with_own_heads
from crosshatch.simulator.vertical.sharing import Frozen
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Inputs:
    """Puts the inputs of losses together."""

    task: Task
    passes: Passes
    widths: tuple[int, ...]

    @cached_property
    def columns(self) -> list[tuple[int, int]]:
        """Where each silo's embeddings stand in what is joined."""
        return [self.task.fusion.columns(self.widths, j) for j in range(len(self.widths))]

    def of(
        self, frozen: Frozen, batch: Batch, part: int, silos: Sequence[int], local: LocalSteps
    ) -> dict[int, LossInputs]:
        """For these silos' samples of a part, in the order of their clients."""
        found, alike = {}, dict[int, list[int]]()  # silos with labels, those together that have seen the same
        for j in silos:
            if j in frozen.gradients:
                found[j] = LossInputs(gradient=frozen.gradients[j])
            elif j in frozen.derivatives:
                found[j] = self._sent(frozen, batch, part, j, local)
            else:
                check_told(j, told=j in frozen.seen)
                alike.setdefault(id(frozen.seen[j]), []).append(j)
        for group in alike.values():
            seen = frozen.seen[group[0]]
            every = [seen[j].rows[part] if j in seen else frozen.own[j][part] for j in range(len(self.widths))]
            y = self.passes.labels(batch, part)
            for j, rest in zip(group, self.task.fusion.others(every, group), strict=True):
                inputs = LossInputs(y=batch.by_client(j, part, y), rest=batch.by_client(j, part, rest))
                found[j] = self._with_start(frozen, batch, part, j, inputs, rest, local)
        return found

    def _sent(self, frozen: Frozen, batch: Batch, part: int, silo: int, local: LocalSteps) -> LossInputs:
        """The derivative that the label's holder sent; in a transfer task the components."""
        rows = frozen.derivatives[silo][part]
        check_told(silo, told=rows is not None)
        assert rows is not None
        rows = batch.by_client(silo, part, rows)
        if self.task.transfer is not None:
            return self._stood_apart(frozen, batch, part, silo, LossInputs(rest=rows), local)
        if not local.continued:
            return LossInputs(derivative=rows)
        check_continued(head=self.task.head is not None)
        return LossInputs(derivative=rows, start=batch.by_client(silo, part, frozen.own[silo][part]))

    def _with_start(
        self, frozen: Frozen, batch: Batch, part: int, silo: int, inputs: LossInputs, rest: Tensor, local: LocalSteps
    ) -> LossInputs:
        """The same with where the silo stood at the exchange, if steps look back at it; `rest` is as drawn."""
        if self.task.transfer is not None:
            return self._transferred(frozen, batch, part, silo, inputs, local)
        if local.anticipation == 1:
            return inputs
        where = frozen.own[silo][part]
        if self.task.head is not None:
            joined = self.task.fusion.join(where, rest, self.columns[silo])
            with torch.no_grad():
                where = with_own_heads(self.task.apply_head, frozen.heads[silo], [joined], batch, silo, part)
        return replace(inputs, start=batch.by_client(silo, part, where))

    def _transferred(
        self, frozen: Frozen, batch: Batch, part: int, silo: int, inputs: LossInputs, local: LocalSteps
    ) -> LossInputs:
        """The other side's components, of its embeddings, Phi_A and the labels."""
        assert self.task.transfer is not None
        assert inputs.rest is not None
        assert inputs.y is not None
        other = inputs.rest[:, slice(*self.columns[1 - silo])]
        if self.task.holds_head(silo):
            told = LossInputs(y=inputs.y, rest=other)
        else:
            told = LossInputs(rest=self.task.transfer.components(other, frozen.heads[silo], inputs.y))
        return self._stood_apart(frozen, batch, part, silo, told, local)

    def _stood_apart(
        self, frozen: Frozen, batch: Batch, part: int, silo: int, inputs: LossInputs, local: LocalSteps
    ) -> LossInputs:
        """The same with where both sides of a transfer task stood, if steps look back at it."""
        if local.anticipation == 1:
            return inputs
        assert self.task.transfer is not None
        own = batch.by_client(silo, part, frozen.own[silo][part])
        class_mean = frozen.heads[silo] if self.task.holds_head(silo) else None
        return replace(inputs, start=self.task.transfer.stood(inputs.sides(self.task.transfer, own, class_mean)))
