"""Chains of linear layers, all clients at once: their copies are an axis, padded to the longest of a bucket.

A padded row has weight zero in the loss. Silos with blocks of the same shape are stacked together with their clients.
In front of the chain there may be a recurrent layer or convolutions. With `gram` the chain's first layer stays implicit
in every copy, see `gram.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.local.chain import as_chain
from crosshatch.local.layers import Chain, backward, copies, forward, size
from crosshatch.local.layers import step as descend
from crosshatch.local.pool import run_all
from crosshatch.local.problem import Problem
from crosshatch.local.stacked.convolved import Convolved, Images, as_convolved
from crosshatch.local.stacked.gram import Gram, Growing
from crosshatch.local.stacked.recurrent import Cell, Recurrent, as_recurrent
from crosshatch.local.stacked.stack import Jobs, Mine, Rows, Stack, buckets

_MEMORY = 2**28  # bytes a bucket of recurrent layers, or of blocks behind convolutions, may take
_LAYERS: WeakKeyDictionary[nn.Module, dict[tuple[int, ...], tuple[Cell | Images | None, Chain | None]]] = (
    WeakKeyDictionary()
)  # by the shape of a sample; templates do not change during a run
_CACHE = 2**26  # bytes a bucket of convolutions should take


@dataclass(frozen=True)
class Shapes:
    """What a problem's copies are made of: layers in front of the block's chain, if there are any, and the head's."""

    front: Cell | Images | None
    block: Chain
    head: Chain  # empty for a sum


def shapes_of(problem: Problem) -> Shapes | None:
    """The layers to stack, or None where stacking by hand is impossible."""
    module, fused = problem.task.blocks[problem.silo], problem.task.head
    sample = tuple(problem.parts[0].x.shape[1:])
    known = _LAYERS.setdefault(module, {})
    if sample not in known:
        known[sample] = as_recurrent(module) or as_convolved(module, sample) or (None, as_chain(module))
    front, block = known[sample]
    if block is None:
        return None
    head = () if fused is None or problem.parts[0].known.derivative is not None else as_chain(fused)
    return None if head is None else Shapes(front, block, head)


def solve_stacked(
    problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, gram: bool, threads: int
) -> list[Tensor]:
    """For problems alike in shape and settings: each one's weighted sum (p,), or its clients' blocks (clients, p)."""
    stack = Stack(problems)
    shapes = shapes_of(problems[0])
    assert shapes is not None
    shares = torch.cat(list(weights)).to(problems[0].start)  # one for each job
    totals = [_idle(stack, i, shares, keep=keep) for i in range(len(problems))]
    groups = buckets(stack.most_rows)
    alone = 1  # small products: torch's own threads do
    if shapes.front is not None:
        groups, alone = _pieces(stack, groups, shapes, gram, threads), threads
    done = run_all(
        [partial(_run, stack, shapes, jobs, gram, None if keep else shares) for jobs in groups], threads=alone
    )
    for found in done:
        for mine, result in found:
            if keep:
                totals[mine.problem][mine.clients] = result
            else:
                totals[mine.problem] += result
    return totals


def _pieces(stack: Stack, groups: Sequence[Jobs], shapes: Shapes, gram: bool, threads: int) -> list[Jobs]:
    """Buckets cut so that every thread has some of each, and none takes too much memory."""
    pieces = []
    front, problem, width = shapes.front, stack.problems[0], stack.problems[0].start.element_size()
    assert front is not None
    room = _MEMORY if isinstance(front, Cell) else _CACHE
    for jobs in groups:
        rows = int(stack.most_rows[jobs].max())
        block = problem.start.shape[-1]
        if gram:  # a layer made of its rows instead of its own numbers
            layer = shapes.block[0]
            block += rows * problem.steps * (layer.inputs + layer.outputs) - layer.size
        count = threads * ceil(len(jobs) * width * max(front.numbers(rows) / room, block / _MEMORY) / threads)
        pieces += np.array_split(jobs, min(count, len(jobs)))
    return pieces


def _run(stack: Stack, shapes: Shapes, jobs: Jobs, gram: bool, shares: Tensor | None) -> list[tuple[Mine, Tensor]]:
    """For each problem in a bucket its jobs' blocks (jobs, p), or their sum (p,) under shares (all jobs,).

    The bucket itself goes: only so many of them are in memory as there are threads.
    """
    bucket = Bucket(stack, shapes, jobs, gram=gram)
    bucket.run()
    present = stack.by_problem(jobs)
    if shares is None:
        blocks = bucket.blocks()
        return [(mine, blocks[mine.where]) for mine in present]
    own = shares.index_select(0, torch.as_tensor(jobs, device=shares.device))
    return list(zip(present, bucket.weighted_sums(own), strict=True))


def _idle(stack: Stack, i: int, shares: Tensor, *, keep: bool) -> Tensor:
    """The part of the result that clients without any rows make up: they stay where they are."""
    problem = stack.problems[i]
    start = problem.start.expand(problem.clients, -1)
    if keep:
        return start.clone()
    jobs = slice(*stack.first_job[i : i + 2].tolist())
    rows = stack.most_rows[jobs]
    if rows.all():
        return torch.zeros_like(problem.start[..., 0, :] if problem.start.dim() > 1 else problem.start)
    return (shares[jobs] * torch.as_tensor(rows == 0, device=shares.device)) @ start


class Bucket:
    """Jobs of similar size, their copies of the weights side by side."""

    def __init__(self, stack: Stack, shapes: Shapes, jobs: Jobs, *, gram: bool) -> None:
        self.stack, self.jobs = stack, jobs
        self.problem, block = stack.problems[0], shapes.block
        self.parts = [stack.rows(jobs, s) for s in range(len(self.problem.parts))]
        ahead = 0 if shapes.front is None else shapes.front.size
        self.front: Recurrent | Convolved | None = None
        if isinstance(shapes.front, Cell):
            self.front = Recurrent(shapes.front, stack.start(jobs, slice(ahead)))
            self.parts = [rows.by_time(shapes.front.steps) for rows in self.parts]
        elif shapes.front is not None:
            self.front = Convolved(shapes.front, stack.start(jobs, slice(ahead)))
            self.parts = [replace(rows, x=shapes.front.windows(rows.x)) for rows in self.parts]
        self.implicit: Gram | Growing | None = None
        if gram and self.front is None:
            self.implicit = Gram(stack, jobs, block[0], self.parts[0])
        elif gram:
            self.implicit = Growing(stack, jobs, block[0], ahead, self.parts[0], self.problem.steps)
        self.chain = block[1:] if gram else block  # what is stacked
        start = stack.start(jobs, slice(ahead + (block[0].size if gram else 0), None))
        self.layers = copies(start, self.chain)
        self.first_outputs = [] if gram else self.parts[0].outputs
        received = stack.received_head(jobs) if shapes.head else None
        self.head, self.trains_head = shapes.head, bool(shapes.head) and received is None
        head_start = start[:, size(self.chain) :] if received is None else received
        self.head_layers = copies(head_start, self.head)
        trained = [*self.layers, *self.head_layers] if self.trains_head else self.layers
        self.behind = [tensor for layer in trained for tensor in layer.tensors()]
        front = [] if self.front is None else self.front.tensors
        self.trained = [*front, *self.behind]
        self.regularised = [*front, *(tensor for layer in self.layers for tensor in layer.tensors())]
        self.anchor = [tensor.clone() for tensor in self.trained] if self.problem.pull else []

    def run(self) -> None:
        """All steps."""
        for step in range(self.problem.steps):
            rows = self.parts[(self.problem.first + step) % len(self.parts)]
            if rows.alive is None:
                self._step(rows)
                continue
            before = [tensor.clone() for tensor in self.trained]
            self._step(rows)
            for tensor, old in zip(self.trained, before, strict=True):
                tensor.copy_(torch.where(rows.alive, tensor, old))

    def _step(self, rows: Rows) -> None:
        """One gradient step of all jobs, in place."""
        eta, regulariser, pull = self.problem.step_size, self.problem.task.regulariser, self.problem.pull
        decay = 1 - eta * (regulariser.l2 + pull)
        below = rows.x if self.front is None else self.front.outputs_for(rows.x)
        below = below if self.implicit is None else self.implicit.outputs_for(below)
        if self.layers:
            outputs = self.first_outputs or forward(self.layers, self.chain, below)
            self.first_outputs = []
            gradient = self._at_embedding(outputs[-1], rows, eta, 1 - eta * pull)
            need_input = self.front is not None or self.implicit is not None
            gradients, gradient = backward(self.chain, self.layers, outputs, gradient, need_input=need_input)
            descend(self.layers, [below, *outputs[:-1]], gradients, eta, decay)
        else:  # the implicit layer is the whole block
            gradient = self._at_embedding(below, rows, eta, 1 - eta * pull)
        if self.implicit is not None:
            gradient = self.implicit.step(gradient, eta, decay)
        if self.front is not None:
            self.front.step(gradient, eta, decay)
        for tensor, anchor in zip(self.trained, self.anchor, strict=False):
            tensor.add_(anchor, alpha=eta * pull)
        if regulariser.l1:
            for tensor in self.regularised:
                tensor.copy_(regulariser.proximal(tensor, eta))

    def _at_embedding(self, own: Tensor, rows: Rows, eta: float, decay: float) -> Tensor:
        """Gradient at the block's outputs (K, m, e); a head held here takes its step on the way."""
        if rows.derivative is not None:
            return rows.derivative * rows.scale
        assert rows.y is not None
        assert rows.rest is not None
        loss = self.problem.task.loss
        joined = self.problem.task.fusion.join(own, rows.rest, self.problem.columns)
        if self.problem.task.head is None:
            return loss.derivative(joined, rows.y).mul_(rows.scale)
        outputs = forward(self.head_layers, self.head, joined)
        gradient = loss.derivative(outputs[-1], rows.y).mul_(rows.scale)
        gradients, gradient = backward(self.head, self.head_layers, outputs, gradient)
        if self.trains_head:
            descend(self.head_layers, [joined, *outputs[:-1]], gradients, eta, decay)
        low, high = self.problem.columns
        return gradient[..., low:high].contiguous()

    def blocks(self) -> Tensor:
        """All blocks (K, p) in the end."""
        ahead = [] if self.front is None else self.front.flat(self.front.tensors)
        middle = [] if self.implicit is None else [tensor.flatten(1) for tensor in self.implicit.weights().tensors()]
        return torch.cat([*ahead, *middle, *(tensor.flatten(1) for tensor in self.behind)], dim=1)

    def weighted_sums(self, shares: Tensor) -> Tensor:
        """The sum of blocks under weights `shares` (K,), of each problem that has jobs here: (problems, p)."""
        present, which = np.unique(self.stack.problem_of[self.jobs], return_inverse=True)
        problem = torch.as_tensor(which, device=shares.device)

        def add_up(tensor: Tensor) -> Tensor:
            sums = tensor.new_zeros(len(present), *tensor.shape[1:])
            return sums.index_add_(0, problem, tensor * shares.view(-1, 1, 1))

        ahead = [] if self.front is None else self.front.flat([add_up(tensor) for tensor in self.front.tensors])
        middle = [] if self.implicit is None else [self.implicit.weighted_sums(shares)]
        return torch.cat([*ahead, *middle, *(add_up(tensor).flatten(1) for tensor in self.behind)], dim=1)
