"""A client's local steps: what they need, and the two ways to take them.

`PlainSteps` follows the definition by autograd, and is what faster ways are held against. `SolvedSteps` goes through
`local`, as the simulator's clients do. Who evaluates takes none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn, Protocol, final

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.anchors import Anchors
from crosshatch.local.forward import KeptPass, forward, in_pieces
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.masks import own_masks
from crosshatch.local.modules import evaluating
from crosshatch.local.moments import Moments
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.local.solve import solve
from crosshatch.parties.holdings.model import KnownOfOthers, Model
from crosshatch.task.fit import Elsewhere
from crosshatch.task.fusion import Head
from crosshatch.task.task import Task

Way = Literal["plain", "solved"]
"""How the clients of a federation take their steps."""
_ALONE = torch.ones(1, dtype=torch.float64)


@dataclass(frozen=True)
class Work:
    """Steps from `block` on parts in turn: the client's rows x (n, ...) of a part, and what it knows for them.

    It stays where it is in a step whose part it has nothing of. `seed` is the run's with the round, `moments` its state
    of the optimiser. In a transfer task the holder of the class mean has its `anchors`.
    """

    seed: tuple[int, int]
    block: Tensor
    parts: Sequence[tuple[Tensor, KnownOfOthers]]
    head: Tensor | None
    local: LocalSteps
    moments: Moments | None = None
    anchors: Anchors | None = None


class Steps(Protocol):
    """What a client computes with its block."""

    def embed(self, block: Tensor, x: Tensor, seed: tuple[int, int, int]) -> Tensor:
        """Embeddings (n, e) of rows x (n, ...) in training; `seed` is the run's with round and part."""
        ...

    def descend(self, work: Work) -> tuple[Tensor, Moments | None]:
        """The block after the steps, and the optimiser's state where there is one."""
        ...


@final
@dataclass(frozen=True)
class PlainSteps:
    """Step by step, by autograd through the client's own modules; `draws`: blocks draw random numbers."""

    model: Model
    silo: int
    number: int
    draws: bool

    def _masks(self, seed: tuple[int, ...]) -> AbstractContextManager[None]:
        return own_masks(seed, self.silo, self.number) if self.draws else nullcontext()

    def embed(self, block: Tensor, x: Tensor, seed: tuple[int, int, int]) -> Tensor:
        with torch.no_grad(), self._masks(seed):
            return self.model.embed(block, x)

    def descend(self, work: Work) -> tuple[Tensor, Moments | None]:
        """One step after the other."""
        now, moments, local = work.block, work.moments, work.local
        for step in range(local.first, local.first + local.steps):
            x, known = work.parts[step % len(work.parts)]
            if len(x):
                with self._masks((*work.seed, step)):
                    now, moments = self.model.step(
                        now, x, known, work.head, local, start=work.block, moments=moments, anchors=work.anchors
                    )
        if work.anchors is not None:
            mean = self.model.class_mean(now, work.anchors, every=True)
            now = torch.cat([now[: -len(mean)], mean])
        return now, moments


@final
@dataclass
class SolvedSteps:
    """As one problem of one client; `task` is the task as its silo has it.

    The last pass over a part's rows is kept: the steps that follow from the same block begin with it.
    """

    task: Task
    silo: int
    number: int
    columns: tuple[int, int]
    _kept: tuple[Tensor, KeptPass | None] | None = field(default=None, init=False)

    @classmethod
    def of(cls, task: Task, silo: int, number: int, widths: Sequence[int], *, knows: bool) -> SolvedSteps:
        """A client's part of the whole task: `knows` says whether it has labels, and needs the head's module."""
        blocks = tuple(block if j == silo else Elsewhere(widths[j]) for j, block in enumerate(task.blocks))
        fusion, holder = task.fusion, task.head_holder
        if holder is not None and not knows:
            fusion = Head(Elsewhere(0), holder)
        return cls(replace(task, blocks=blocks, fusion=fusion), silo, number, fusion.columns(widths, silo))

    def embed(self, block: Tensor, x: Tensor, seed: tuple[int, int, int]) -> Tensor:
        """One pass, of which the steps may begin with the first part's."""
        holders = np.array([self.number]), np.array([len(x)])
        rows, kept = forward(self.task, self.silo, block, x, keep=False, threads=1, seed=seed, holders=holders)
        if seed[-1] == 0:
            self._kept = x, kept
        return rows

    def descend(self, work: Work) -> tuple[Tensor, Moments | None]:
        if not any(len(x) for x, _ in work.parts):
            return work.block, work.moments
        parts = tuple(Part(x, self._inputs(work, known), np.array([len(x)])) for x, known in work.parts)
        problem = Problem(
            task=self.task, silo=self.silo, parts=parts, start=work.block,
            head=None if self.task.holds_head(self.silo) else work.head, columns=self.columns, local=work.local,
            seed=work.seed, numbers=np.array([self.number]),
            state=None if work.moments is None else work.moments.flat.unsqueeze(0), anchors=work.anchors,
        )  # fmt: skip
        kept, self._kept = self._find(problem), None
        (found,) = solve(
            [problem], [_ALONE], keep=work.moments is not None, strategy="auto", threads=1, passes=[kept]
        )  # fmt: skip
        if work.moments is None:
            return found, None
        numbers = len(work.block)
        return found[0, :numbers].clone(), Moments.of(self.task.optimiser, found[0, numbers:].clone())

    def _find(self, problem: Problem) -> KeptPass | None:
        """The pass that the first step begins with, if it is there: of the same rows, under the same block."""
        x, kept = self._kept or (None, None)
        begins = x is problem.parts[0].x and problem.local.first % len(problem.parts) == 0
        return kept if begins and kept is not None and kept.start is problem.start else None

    def _inputs(self, work: Work, known: KnownOfOthers) -> LossInputs:
        """What the loss needs, as problems have it."""
        if self.task.transfer is not None:
            return self._transferred(work, known)
        if known.derivative is not None:
            return LossInputs(derivative=known.derivative, start=known.own if work.local.continued else None)
        assert known.rest is not None
        rest, start = known.rest, known.own
        if self.task.head is not None:
            assert known.own is not None
            low = self.columns[0]
            rest = torch.cat([rest[:, :low], known.own, rest[:, low:]], dim=1)  # its own columns are overwritten
        if work.local.anticipation == 1:
            return LossInputs(y=known.y, rest=rest)
        if self.task.head is not None:
            assert known.head is not None
            with torch.no_grad():
                start = self.task.apply_head(known.head, rest)
        return LossInputs(y=known.y, rest=rest, start=start)

    def _transferred(self, work: Work, known: KnownOfOthers) -> LossInputs:
        """Of both sides of a transfer task what the other one told, and where they stood if steps look back at it."""
        transfer = self.task.transfer
        assert transfer is not None
        assert known.rest is not None
        inputs = LossInputs(y=known.y, rest=known.rest)
        if known.y is not None and not self.task.holds_head(self.silo):
            assert known.head is not None
            inputs = LossInputs(rest=transfer.components(known.rest, known.head, known.y))
        if work.local.anticipation == 1:
            return inputs
        assert known.own is not None
        mean = known.head if self.task.holds_head(self.silo) else None
        return replace(inputs, start=transfer.starting_point(inputs.sides(transfer, known.own, mean)))


@final
@dataclass(frozen=True)
class EvaluationSteps:
    """In an evaluation: outputs in evaluation mode, and no steps."""

    model: Model

    def embed(self, block: Tensor, x: Tensor, seed: tuple[int, int, int]) -> Tensor:  # noqa: ARG002
        """Embeddings (n, e) of rows x (n, ...), without random numbers, piece by piece."""
        with torch.no_grad(), evaluating(self.model.block):
            return torch.cat([self.model.embed(block, x[rows]) for rows in in_pieces(len(x)) or [slice(0)]])

    def descend(self, work: Work) -> NoReturn:
        raise AssertionError(f"a step in an evaluation, on {len(work.parts)} parts")
