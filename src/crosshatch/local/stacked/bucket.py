"""Chains of linear layers, all clients at once: their copies are an axis, padded to the longest of a bucket.

A padded row has weight zero in the loss. Silos with blocks of the same shape are stacked together with their clients.
In front of the chain there may be a recurrent layer or convolutions. With `gram` the chain's first layer stays implicit
in every copy, see `gram.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.given_gradient import descend_along
from crosshatch.local.layers import Copies
from crosshatch.local.pool import run_each
from crosshatch.local.problem import Problem
from crosshatch.local.stacked.convolved import Convolved
from crosshatch.local.stacked.gram import Implicit
from crosshatch.local.stacked.recurrent import Cell, Recurrent
from crosshatch.local.stacked.shapes import Shapes
from crosshatch.local.stacked.stack import (
    Jobs,
    PaddedRows,
    ProblemJobs,
    Stack,
)

_MOST_BYTES = 2**28  # for a bucket of recurrent layers, or of blocks behind convolutions
_CACHE_BYTES = 2**26  # for a bucket of convolutions
Layers = Recurrent | Convolved | Implicit | Copies


def solve_stacked(
    problems: Sequence[Problem],
    shapes: Shapes,
    weights: Sequence[Tensor],
    passes: Sequence[KeptPass | None],
    *,
    keep: bool,
    gram: bool,
    threads: int,
) -> list[Tensor]:
    """For problems alike in shape and settings: each one's weighted sum (p,), or its clients' blocks (clients, p)."""
    stack = Stack(problems, passes)
    client_weights = torch.cat(list(weights)).to(problems[0].start)  # one for each job
    totals = [_idle(stack, i, client_weights, keep=keep) for i in range(len(problems))]
    solved = partial(_solve_bucket, stack, shapes, gram=gram, client_weights=None if keep else client_weights)
    if shapes.front is None:  # small products: torch's own threads do
        done = [solved(jobs) for jobs in stack.groups]
    else:
        pieces = _pieces(stack, shapes, gram, threads)
        done = list(run_each([partial(solved, jobs) for jobs in pieces], threads=threads))
    for found in done:
        for mine, result in found:
            if keep:
                totals[mine.number][mine.clients] = result
            else:
                totals[mine.number] += result
    return totals


def _pieces(stack: Stack, shapes: Shapes, gram: bool, threads: int) -> list[Jobs]:
    """Buckets cut so that every thread has some of each, and none takes too much memory."""
    pieces = []
    front, problem, width = shapes.front, stack.problems[0], stack.problems[0].start.element_size()
    assert front is not None
    room = _MOST_BYTES if isinstance(front, Cell) else _CACHE_BYTES
    for jobs in stack.groups:
        rows = int(stack.most_rows[jobs].max())
        block = problem.start.shape[-1]
        if gram:  # a layer made of its rows instead of its own numbers
            layer = shapes.block[0]
            block += rows * problem.local.steps * (layer.inputs + layer.outputs) - layer.size
        count = threads * ceil(len(jobs) * width * max(front.numbers(rows) / room, block / _MOST_BYTES) / threads)
        pieces += np.array_split(jobs, min(count, len(jobs)))
    return pieces


def _solve_bucket(
    stack: Stack, shapes: Shapes, jobs: Jobs, *, gram: bool, client_weights: Tensor | None
) -> list[tuple[ProblemJobs, Tensor]]:
    """For each problem in a bucket its jobs' blocks (jobs, p), or their sum (p,) under the weights (all jobs,).

    The bucket itself is not kept: there are never more of them in memory than there are threads.
    """
    bucket = Bucket(stack, shapes, jobs, gram=gram)
    states = [(stack.problems[mine.number].state, mine.clients) for mine in bucket.members]
    bucket.run([one.index_select(0, of) for one, of in states if one is not None])
    if client_weights is not None:
        own = client_weights.index_select(0, torch.as_tensor(jobs, device=client_weights.device))
        return list(zip(bucket.members, bucket.sums(own), strict=True))
    blocks = bucket.blocks()
    return [(mine, blocks[mine.where]) for mine in bucket.members]


def _idle(stack: Stack, i: int, client_weights: Tensor, *, keep: bool) -> Tensor:
    """The part of the result that clients without any rows make up: they stay where they are."""
    start, jobs = stack.problems[i].start, slice(*stack.first_job[i : i + 2].tolist())
    starts = start.expand(jobs.stop - jobs.start, -1)
    if keep:
        state = stack.problems[i].state
        return starts.clone() if state is None else torch.cat([starts, state], dim=1)
    rows = stack.most_rows[jobs]
    return (client_weights[jobs] * torch.as_tensor(rows == 0, device=client_weights.device)) @ starts


class Bucket:
    """Jobs of similar size, their copies of the weights side by side.

    A sample passes the layers in front, those of the chain, and the head; the way back is the other way round. Each
    keeps of its pass what its step needs.
    """

    def __init__(self, stack: Stack, shapes: Shapes, jobs: Jobs, *, gram: bool) -> None:
        self.problem, self.members, self.shapes, self.gram = stack.problems[0], stack.by_problem(jobs), shapes, gram
        self.parts = [stack.rows(jobs, s) for s in range(len(self.problem.parts))]
        self.outputs = self.parts[0].outputs
        if shapes.front is not None:
            self.parts = [replace(rows, x=shapes.front.arranged(rows.x)) for rows in self.parts]
        heads = [mine.head.expand(len(mine.clients), -1) for mine in self.members if mine.head is not None]
        self.received = Copies(shapes.head, torch.cat(heads)) if shapes.head and heads else None
        self.held: list[Layers] = []
        self.done: Tensor | None = None  # the blocks in the end, where steps were taken along flat vectors

    def _at_start(self, where: slice) -> Tensor:
        """The numbers `where` in the blocks the jobs start from, (K, numbers)."""
        return torch.cat([mine.start[..., where].expand(len(mine.clients), -1) for mine in self.members])

    def _take(self, numbers: Callable[[slice], Tensor]) -> None:
        """All that is trained, from its `numbers` (K, n) in flat vectors: in front, the chain, and a head held here.

        With `gram` the first layer of the chain is one for itself, which stays implicit.
        """
        shapes, chain, offset = self.shapes, self.shapes.block, 0
        layers: list[Layers] = []
        if shapes.front is not None:
            front, offset = shapes.front, shapes.front.size
            own = numbers(slice(offset))
            layers.append(Recurrent(front, own) if isinstance(front, Cell) else Convolved(front, own))
        if self.gram:
            first, further = chain[0], self.problem.local.steps if layers else None
            layers.append(Implicit(self.members, first, offset, self.parts[0], further))
            chain, offset = chain[1:], offset + first.size
        if chain:
            known = () if self.gram else self.outputs
            layers.append(Copies(chain, numbers(slice(offset, None)), known=known, need_input=bool(layers)))
        if shapes.holds_head:
            behind = slice(offset + sum(layer.size for layer in chain), None)
            layers.append(Copies(shapes.head, numbers(behind)))
        self.held, self.outputs = layers, []

    def run(self, states: Sequence[Tensor]) -> None:
        """All steps of all jobs, with the optimiser's states (jobs, s) of each problem, if there are any."""
        local, regulariser = self.problem.local, self.problem.task.regulariser
        if self.problem.task.free[self.problem.silo] is not None or local.proximal or states:
            state = torch.cat(list(states)) if states else None
            self.done = descend_along(self.problem, self._at_start(slice(None)), state, self._gradient)
            return
        self._take(self._at_start)
        chain = self.held[:-1] if self.shapes.holds_head else self.held
        shrinking = [tensor for layers in chain for tensor in layers.tensors] if regulariser.l1 else []
        for step in range(local.first, local.first + local.steps):
            rows = self.parts[step % len(self.parts)]
            trained = [] if rows.alive is None else [tensor for layers in self.held for tensor in layers.tensors]
            before = [tensor.clone() for tensor in trained]
            self.descend(rows, local.step_size, 1 - local.step_size * regulariser.l2)
            for tensor in shrinking:
                tensor.copy_(regulariser.proximal(tensor, local.step_size))
            for tensor, old in zip(trained, before, strict=True):  # a job without rows stays where it is
                tensor.copy_(tensor if rows.alive is None else torch.where(rows.alive, tensor, old))

    def descend(self, rows: PaddedRows, eta: float, decay: float, head_decay: float = 1.0) -> None:
        """Everything that is trained times its decay, less eta times its gradient; in place."""
        problem, task, inputs, columns = self.problem, self.problem.task, rows.inputs, self.problem.columns
        head = self.held[-1] if self.shapes.holds_head else self.received
        chain = self.held[:-1] if self.shapes.holds_head else self.held
        own = rows.x
        for layers in chain:
            own = layers.outputs_for(own)
        if head is None:
            gradient = problem.derivative(own, inputs).mul_(rows.scale)
        else:
            assert inputs.y is not None
            assert inputs.rest is not None
            scores = head.outputs_for(task.fusion.join(own, inputs.rest, columns))
            scores = scores if problem.local.anticipation == 1 else problem.anticipated(scores, inputs.start)
            gradient = task.loss.derivative(scores, inputs.y).mul_(rows.scale)
            assert isinstance(head, Copies)
            back = head.back(gradient) if head is self.received else head.step(gradient, eta, head_decay)
            gradient = back[..., slice(*columns)].contiguous()
        for layers in reversed(chain):
            gradient = layers.step(gradient, eta, decay)

    def _gradient(self, step: int, vectors: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients (K, p) at flat vectors, and who has rows."""
        self._take(lambda where: vectors[:, where])
        rows = self.parts[step % len(self.parts)]
        self.descend(rows, -1.0, 0.0, 0.0)  # leaves the gradients in the weights' place
        return self.blocks(), None if rows.alive is None else rows.alive.squeeze(-1)

    def blocks(self) -> Tensor:
        """All blocks (K, p), with the optimiser's states behind in the end, if there are any."""
        if self.done is not None:
            return self.done
        return torch.cat([piece for layers in self.held for piece in layers.flat()], dim=1)

    def sums(self, weights: Tensor) -> list[Tensor]:
        """The sum of blocks (p,) under weights (K,), of each problem that has jobs here."""
        if self.done is not None:
            return [weights[mine.where] @ self.done[mine.where] for mine in self.members]
        pieces: list[list[Tensor]] = [[] for _ in self.members]
        for layers in self.held:
            if isinstance(layers, Implicit):
                found = layers.sums(weights)
            else:
                flat = layers.flat()
                found = [[weights[mine.where] @ one[mine.where] for one in flat] for mine in self.members]
            for mine, its in zip(pieces, found, strict=True):
                mine += its
        return list(map(torch.cat, pieces))
