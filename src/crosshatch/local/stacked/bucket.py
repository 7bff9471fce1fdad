"""Chains of linear layers, all clients at once: their copies are an axis, padded to the longest of a bucket.

A padded row has weight zero in the loss. Silos with blocks of the same shape are stacked together with their clients.
In front of the chain there may be a recurrent layer or convolutions. With `gram` the chain's first layer stays implicit
in every copy, see `gram.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.layers import Copies
from crosshatch.local.moments import Moments
from crosshatch.local.pool import run_each
from crosshatch.local.problem import Problem
from crosshatch.local.stacked.convolved import Convolved, Images
from crosshatch.local.stacked.gram import Gram, Growing
from crosshatch.local.stacked.optimised import add_pulls, states_of, take_step
from crosshatch.local.stacked.recurrent import Cell, Recurrent
from crosshatch.local.stacked.shapes import Shapes
from crosshatch.local.stacked.stack import (
    Jobs,
    PaddedRows,
    ProblemJobs,
    Stack,
    buckets,
    numbers_at_start,
    received_heads,
)

_MOST_BYTES = 2**28  # for a bucket of recurrent layers, or of blocks behind convolutions
_CACHE_BYTES = 2**26  # for a bucket of convolutions
_WORTHWHILE = 2**16  # multiplications per step that a further bucket saves at least: its calls take as long


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
    groups = buckets(stack.most_rows, _WORTHWHILE / max(1, problems[0].start.shape[-1]))
    solved = partial(_solve_bucket, stack, shapes, gram=gram, client_weights=None if keep else client_weights)
    if shapes.front is None:  # small products: torch's own threads do
        done = [solved(jobs) for jobs in groups]
    else:
        pieces = _pieces(stack, groups, shapes, gram, threads)
        done = list(run_each([partial(solved, jobs) for jobs in pieces], threads=threads))
    for found in done:
        for mine, result in found:
            if keep:
                totals[mine.number][mine.clients] = result
            else:
                totals[mine.number] += result
    return totals


def _pieces(stack: Stack, groups: Sequence[Jobs], shapes: Shapes, gram: bool, threads: int) -> list[Jobs]:
    """Buckets cut so that every thread has some of each, and none takes too much memory."""
    pieces = []
    front, problem, width = shapes.front, stack.problems[0], stack.problems[0].start.element_size()
    assert front is not None
    room = _MOST_BYTES if isinstance(front, Cell) else _CACHE_BYTES
    for jobs in groups:
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
    if bucket.problem.state is not None:
        rows = bucket.run_optimised(states_of(stack.problems, bucket.members))
        return [(mine, rows[mine.where]) for mine in bucket.members]
    bucket.run()
    if client_weights is None:
        blocks = bucket.blocks()
        return [(mine, blocks[mine.where]) for mine in bucket.members]
    own = client_weights.index_select(0, torch.as_tensor(jobs, device=client_weights.device))
    return list(zip(bucket.members, bucket.weighted_sums(own), strict=True))


def _idle(stack: Stack, i: int, client_weights: Tensor, *, keep: bool) -> Tensor:
    """The part of the result that clients without any rows make up: they stay where they are."""
    start, jobs = stack.problems[i].start, slice(*stack.first_job[i : i + 2].tolist())
    starts = start.expand(jobs.stop - jobs.start, -1)
    if keep:
        state = stack.problems[i].state
        return starts.clone() if state is None else torch.cat([starts, state], dim=1)
    rows = stack.most_rows[jobs]
    if rows.all():
        return torch.zeros_like(start[..., 0, :] if start.dim() > 1 else start)
    return (client_weights[jobs] * torch.as_tensor(rows == 0, device=client_weights.device)) @ starts


class Bucket:
    """Jobs of similar size, their copies of the weights side by side.

    A sample passes the layers in front, those of the chain, and the head; the way back is the other way round. Each
    keeps of its pass what its step needs.
    """

    def __init__(self, stack: Stack, shapes: Shapes, jobs: Jobs, *, gram: bool) -> None:
        self.problem, self.members, self.shapes = stack.problems[0], stack.by_problem(jobs), shapes
        self.parts = [stack.rows(jobs, s) for s in range(len(self.problem.parts))]
        self.front = None if shapes.front is None else self._front(shapes.front)
        self.chain = self._chain(shapes, gram)
        self.head = self._head(shapes) if shapes.head else None
        self.trains_head = shapes.holds_head and self.head is not None
        self.behind = [*self.chain, *([self.head] if self.head is not None and self.trains_head else [])]
        front = [] if self.front is None else self.front.tensors
        self.block = [*front, *(tensor for layers in self.chain for tensor in layers.tensors)]
        self.trained = [*front, *(tensor for layers in self.behind for tensor in layers.tensors)]
        self.free = self._free_biases()
        self.anchor = [tensor.clone() for tensor in self.trained] if self.problem.local.proximal else []

    def _free_biases(self) -> list[Tensor]:
        """Those of the block that the regulariser leaves alone."""
        if self.problem.task.free[self.problem.silo] is None:
            return []
        layers = [*([] if self.front is None else [self.front]), *self.chain]
        return [bias for one in layers if not isinstance(one, Gram | Growing) for bias in one.biases]

    def _front(self, front: Cell | Images) -> Recurrent | Convolved:
        """The layers in front of the chain; the samples become what they take."""
        start = numbers_at_start(self.members, slice(front.size))
        if isinstance(front, Cell):
            self.parts = [rows.by_time(front.steps) for rows in self.parts]
            return Recurrent(front, start)
        self.parts = [replace(rows, x=front.windows(rows.x)) for rows in self.parts]
        return Convolved(front, start)

    def _chain(self, shapes: Shapes, gram: bool) -> list[Gram | Growing | Copies]:
        """The layers of the chain, the first for itself where it stays implicit."""
        first, proximal = shapes.block[0], self.problem.local.proximal
        if not gram:
            start = numbers_at_start(self.members, slice(shapes.size_in_front, None))
            known, need_input = self.parts[0].outputs, self.front is not None
            return [Copies(shapes.block, start, known=known, need_input=need_input)]
        implicit: Gram | Growing
        if self.front is None:
            implicit = Gram(self.members, first, self.parts[0], proximal)
        else:
            implicit = Growing(
                self.members, first, shapes.size_in_front, self.parts[0], self.problem.local.steps, proximal
            )
        if len(shapes.block) == 1:
            return [implicit]
        return [implicit, Copies(shapes.block[1:], numbers_at_start(self.members, slice(implicit.where.stop, None)))]

    def _head(self, shapes: Shapes) -> Copies:
        """The head: behind the block where it is held, or as received."""
        if not shapes.holds_head:
            return Copies(shapes.head, received_heads(self.members))
        block = shapes.size_in_front + sum(layer.size for layer in shapes.block)
        return Copies(shapes.head, numbers_at_start(self.members, slice(block, None)))

    def run(self) -> None:
        """All steps of all jobs, in place."""
        local, regulariser = self.problem.local, self.problem.task.regulariser
        eta, proximal = local.step_size, local.proximal
        for step in range(local.first, local.first + local.steps):
            rows = self.parts[step % len(self.parts)]
            before = [] if rows.alive is None else [tensor.clone() for tensor in self.trained]
            left_alone = [bias.clone() for bias in self.free]
            self.descend(rows, eta, 1 - eta * (regulariser.l2 + proximal), 1 - eta * proximal)
            for bias, old in zip(self.free, left_alone, strict=True):
                bias.add_(old, alpha=eta * regulariser.l2)
            for tensor, anchor in zip(self.trained, self.anchor, strict=False):
                tensor.add_(anchor, alpha=eta * proximal)
            for tensor in self.block if regulariser.l1 else ():
                if all(tensor is not bias for bias in self.free):
                    tensor.copy_(regulariser.proximal(tensor, eta))
            for tensor, old in zip(self.trained, before, strict=False):  # a job without rows stays where it is
                tensor.copy_(torch.where(rows.alive, tensor, old) if rows.alive is not None else tensor)

    def descend(self, rows: PaddedRows, eta: float, decay: float, head_decay: float) -> None:
        """Everything that is trained times its decay, less eta times its gradient; in place."""
        problem, task, inputs, columns = self.problem, self.problem.task, rows.inputs, self.problem.columns
        own = rows.x if self.front is None else self.front.outputs_for(rows.x)
        for layers in self.chain:
            own = layers.outputs_for(own)
        if self.head is None:
            gradient = problem.derivative(own, inputs).mul_(rows.scale)
        else:
            assert inputs.y is not None
            assert inputs.rest is not None
            scores = self.head.outputs_for(task.fusion.join(own, inputs.rest, columns))
            scores = scores if problem.local.anticipation == 1 else problem.anticipated(scores, inputs.start)
            gradient = task.loss.derivative(scores, inputs.y).mul_(rows.scale)
            back = self.head.step(gradient, eta, head_decay) if self.trains_head else self.head.back(gradient)
            gradient = back[..., slice(*columns)].contiguous()
        for layers in reversed(self.chain):
            gradient = layers.step(gradient, eta, decay)
        if self.front is not None:
            self.front.step(gradient, eta, decay)

    def run_optimised(self, state: Tensor) -> Tensor:
        """All steps with the task's optimiser, from states (K, s); the blocks with their states behind, (K, p + s)."""
        regulariser, proximal = self.problem.task.regulariser, self.problem.local.proximal
        begin = Moments.of(self.problem.task.optimiser, state)
        moments, count = [self._as_trained(moment) for moment in begin.moments], begin.count.unsqueeze(-1)
        for step in range(self.problem.local.steps):
            rows = self.parts[(self.problem.local.first + step) % len(self.parts)]
            before, left_alone = ([tensor.clone() for tensor in own] for own in (self.trained, self.free))
            self.descend(rows, -1.0, 0.0, 0.0)  # leaves the gradients in the weights' place
            if regulariser.l2:
                add_pulls(self.block, before[: len(self.block)], (), regulariser.l2)
                add_pulls(self.free, left_alone, (), -regulariser.l2)
            if proximal:
                add_pulls(self.trained, before, self.anchor, proximal)
            moments, count = take_step(
                begin.optimiser, self.trained, before, moments, count, self.problem.local.step_size, rows.alive
            )
        end = Moments(begin.optimiser, [self._flat(moment) for moment in moments], count.squeeze(-1))
        return end.behind(self._flat(self.trained))

    def _as_trained(self, flat: Tensor) -> list[Tensor]:
        """Flat vectors (K, p) as tensors of their own, shaped as those that are trained."""
        shapes, behind = self.shapes, flat[:, self.shapes.size_in_front :]
        tensors = Copies(shapes.block, behind).tensors
        if isinstance(shapes.front, Cell):
            tensors = Recurrent(shapes.front, flat).tensors + tensors
        elif shapes.front is not None:
            tensors = Convolved(shapes.front, flat).tensors + tensors
        if self.trains_head:
            tensors = tensors + Copies(shapes.head, behind[:, sum(layer.size for layer in shapes.block) :]).tensors
        return tensors

    def _flat(self, tensors: Sequence[Tensor]) -> Tensor:
        pieces: list[Tensor] = []
        rest = list(tensors)
        for layers in [*([] if self.front is None else [self.front]), *self.behind]:
            assert not isinstance(layers, Gram | Growing)
            count = len(layers.tensors)
            pieces += layers.flat(rest[:count])
            rest = rest[count:]
        return torch.cat(pieces, dim=1)

    def blocks(self) -> Tensor:
        """All blocks (K, p) in the end."""
        pieces = [] if self.front is None else self.front.flat(self.front.tensors)
        for layers in self.behind:
            pieces += layers.flat(layers.tensors) if isinstance(layers, Copies) else layers.blocks()
        return torch.cat(pieces, dim=1)

    def weighted_sums(self, client_weights: Tensor) -> Tensor:
        """The sum of blocks under weights (K,), of each problem that has jobs here: (problems, p)."""
        count = len(self.members)
        whose = np.repeat(np.arange(count), [len(mine.clients) for mine in self.members])
        problem = torch.as_tensor(whose, device=client_weights.device)

        def add_up(tensors: Sequence[Tensor]) -> list[Tensor]:
            sums = [tensor.new_zeros(count, *tensor.shape[1:]) for tensor in tensors]
            return [
                total.index_add_(0, problem, tensor * client_weights.view(-1, 1, 1))
                for total, tensor in zip(sums, tensors, strict=True)
            ]

        pieces = [] if self.front is None else self.front.flat(add_up(self.front.tensors))
        for layers in self.behind:
            if isinstance(layers, Copies):
                pieces += layers.flat(add_up(layers.tensors))
            else:
                pieces.append(layers.weighted_sums(client_weights))
        return torch.cat(pieces, dim=1)
