"""Chains of linear layers, all clients at once: their copies are an axis, padded to the longest of a bucket.

A padded row has weight zero in the loss. Silos with blocks of the same shape are stacked together with their clients.
In front of the chain there may be a recurrent layer or convolutions. With `gram` the chain's first layer stays implicit
in every copy, see `gram.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
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
from crosshatch.local.stacked.gram import Gram, Growing, Implicit
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
Layers = Recurrent | Convolved | Gram | Growing | Copies
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
        states = [(stack.problems[mine.number].state, mine.clients) for mine in bucket.members]
        rows = bucket.run_optimised(torch.cat([one.index_select(0, of) for one, of in states if one is not None]))
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
    return (client_weights[jobs] * torch.as_tensor(rows == 0, device=client_weights.device)) @ starts


class Bucket:
    """Jobs of similar size, their copies of the weights side by side.

    A sample passes the layers in front, those of the chain, and the head; the way back is the other way round. Each
    keeps of its pass what its step needs.
    """

    def __init__(self, stack: Stack, shapes: Shapes, jobs: Jobs, *, gram: bool) -> None:
        self.problem, self.members, self.shapes = stack.problems[0], stack.by_problem(jobs), shapes
        self.parts = [stack.rows(jobs, s) for s in range(len(self.problem.parts))]
        self.outputs = self.parts[0].outputs
        if shapes.front is not None:
            self.parts = [replace(rows, x=shapes.front.arranged(rows.x)) for rows in self.parts]
        self.held = self._layers(partial(numbers_at_start, self.members), gram=gram)  # everything that is trained
        self.chain = self.held[:-1] if shapes.holds_head else self.held
        self.head: Layers | None = self.held[-1] if shapes.holds_head else None
        if shapes.head and not shapes.holds_head:
            self.head = Copies(shapes.head, received_heads(self.members))
        self.block = [tensor for layers in self.chain for tensor in layers.tensors]
        self.trained = [tensor for layers in self.held for tensor in layers.tensors]
        penalised = self.problem.task.free[self.problem.silo] is None
        self.free = [] if penalised else [bias for layers in self.chain for bias in layers.biases]
        self.anchor = [tensor.clone() for tensor in self.trained] if self.problem.local.proximal else []

    def _layers(self, numbers: Callable[[slice], Tensor], *, gram: bool) -> list[Layers]:
        """All that is trained, from its `numbers` (K, n) in flat vectors: in front, the chain, and a head held here.

        With `gram` the first layer of the chain is one for itself, which stays implicit.
        """
        shapes, local, chain, offset = self.shapes, self.problem.local, self.shapes.block, self.shapes.size_in_front
        layers: list[Layers] = []
        if shapes.front is not None:
            front, own = shapes.front, numbers(slice(offset))
            layers.append(Recurrent(front, own) if isinstance(front, Cell) else Convolved(front, own))
        if gram:
            first, rows = chain[0], self.parts[0]
            growing = partial(Growing, self.members, first, offset, rows, local.steps, local.proximal)
            layers.append(growing() if layers else Gram(self.members, first, rows, local.proximal))
            chain, offset = chain[1:], offset + first.size
        if chain:
            known = () if gram else self.outputs
            layers.append(Copies(chain, numbers(slice(offset, None)), known=known, need_input=bool(layers)))
        if shapes.holds_head:
            behind = slice(offset + sum(layer.size for layer in chain), None)
            layers.append(Copies(shapes.head, numbers(behind)))
        return layers

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
        own = rows.x
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
            assert isinstance(self.head, Copies)
            trains = self.shapes.holds_head
            back = self.head.step(gradient, eta, head_decay) if trains else self.head.back(gradient)
            gradient = back[..., slice(*columns)].contiguous()
        for layers in reversed(self.chain):
            gradient = layers.step(gradient, eta, decay)

    def run_optimised(self, state: Tensor) -> Tensor:
        """All steps with the task's optimiser, from states (K, s); the blocks with their states behind, (K, p + s)."""
        return descend_along(self.problem, self.blocks(), state, self._gradient)

    def _gradient(self, step: int, vectors: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients (K, p) at flat vectors, and who has rows."""
        for tensor, now in zip(self.trained, self._as_trained(vectors), strict=True):
            tensor.copy_(now)
        rows = self.parts[step % len(self.parts)]
        self.descend(rows, -1.0, 0.0, 0.0)  # leaves the gradients in the weights' place
        return self.blocks(), None if rows.alive is None else rows.alive.squeeze(-1)

    def _as_trained(self, flat: Tensor) -> list[Tensor]:
        """Flat vectors (K, p) as tensors of their own, shaped as those that are trained."""
        layers = self._layers(lambda where: flat[:, where], gram=False)
        return [tensor for one in layers for tensor in one.tensors]

    def _flat(self, tensors: Sequence[Tensor], write: Callable[[Implicit], Sequence[Tensor]]) -> Tensor:
        """Tensors like those that are trained, in the order of flat vectors; how layers are written that have none."""
        pieces: list[Tensor] = []
        rest = iter(tensors)
        for layers in self.held:
            mine = list(islice(rest, len(layers.tensors)))
            pieces += write(layers) if isinstance(layers, Implicit) else layers.flat(mine)
        return torch.cat(pieces, dim=1)

    def blocks(self) -> Tensor:
        """All blocks (K, p) in the end."""
        return self._flat(self.trained, Implicit.blocks)

    def weighted_sums(self, client_weights: Tensor) -> Tensor:
        """The sum of blocks under weights (K,), of each problem that has jobs here: (problems, p)."""
        count = len(self.members)
        whose = np.repeat(np.arange(count), [len(mine.clients) for mine in self.members])
        problem = torch.as_tensor(whose, device=client_weights.device)
        sums = [
            tensor.new_zeros(count, *tensor.shape[1:]).index_add_(0, problem, tensor * client_weights.view(-1, 1, 1))
            for tensor in self.trained
        ]
        return self._flat(sums, lambda implicit: [implicit.weighted_sums(client_weights)])
