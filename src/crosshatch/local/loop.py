"""The lean loop: one client after the other on a module of its thread, for any `nn.Module`.

Parameters are views of one flat buffer, counts are exact (nothing is padded), and memory does not grow with the number
of clients. The clients of all silos are cut into runs; threads take whole runs, each with one thread inside torch. Sums
are taken in client order within a run and then over the runs. The runs are the same for any number of threads, and so
are the sums, bit for bit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.given_gradient import descend_along
from crosshatch.local.masks import own_masks
from crosshatch.local.modules import call_with, gradients_of, leaves, parameters_in
from crosshatch.local.pool import run_each
from crosshatch.local.problem import Part, Problem
from crosshatch.local.read_chain import draws_random_numbers
from crosshatch.local.transfer_by_hand import TransferByHand

_RUNS = 16  # of all silos together: enough that no thread waits long for the last


def solve_loop(problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, threads: int) -> list[Tensor]:
    """Each silo's clients' blocks after their steps: weighted sum (p,), or with `keep` all of them (clients, p)."""
    if any(_random(problem) for problem in problems):
        threads = 1  # torch has one generator for all threads
    work = []
    for i, (problem, client_weights) in enumerate(zip(problems, weights, strict=True)):
        rows = np.sum([part.counts for part in problem.parts], axis=0)
        workers: dict[int, _Worker] = {}
        runs = _runs(rows, -(-_RUNS // len(problems)))
        work += [(i, partial(_run, problem, workers, client_weights.tolist(), run, keep)) for run in runs]
    results: list[list[Tensor]] = [[] for _ in problems]
    for (i, _), piece in zip(work, run_each([run for _, run in work], threads=threads), strict=True):
        if keep or not results[i]:
            results[i].append(piece)
        else:
            results[i][0].add_(piece)
    return [torch.cat(pieces) if keep else pieces[0] for pieces in results]


def _random(problem: Problem) -> bool:
    return draws_random_numbers(problem.task.blocks[problem.silo], problem.parts[0].x[:1])


def _runs(rows: np.ndarray[tuple[int], np.dtype[np.int64]], count: int) -> list[range]:
    """Contiguous runs of clients with about the same number of rows."""
    total = np.cumsum(rows)
    cuts = [int(np.searchsorted(total, total[-1] * t / count)) for t in range(1, count)]
    edges = [0, *cuts, len(rows)]
    return [range(low, high) for low, high in pairwise(edges) if high > low]


def _run(
    problem: Problem,
    workers: dict[int, _Worker],
    client_weights: Sequence[float],
    clients: range,
    keep: bool,
) -> Tensor:
    """Weighted sum (p,) over some of the clients, or their blocks (clients, p); every thread has one worker."""
    me = threading.get_ident()
    worker = workers[me] = workers.get(me) or _Worker(problem)
    width = len(worker.buffer) + (0 if problem.state is None else problem.state.shape[1])
    total = worker.buffer.new_empty((len(clients), width) if keep else (width,))
    parts, numbers, starts = problem.parts, problem.at_work.tolist(), problem.start.expand(problem.clients, -1)
    offsets = [part.offsets.tolist() for part in parts]
    for i, client in enumerate(clients):
        mine = [part.rows(edges[client], edges[client + 1]) for part, edges in zip(parts, offsets, strict=True)]
        gradient = partial(worker.gradient, mine, numbers[client])
        state = None if problem.state is None else problem.state[client]
        done = descend_along(problem, starts[client], state, gradient, worker.buffer)
        if keep:
            total[i] = done
        elif i:
            total.add_(done, alpha=client_weights[client])
        else:
            torch.mul(done, client_weights[client], out=total)
    return total


class _Worker:
    """A flat buffer (p,) and the module under its numbers, serving one client after the other."""

    def __init__(self, problem: Problem) -> None:
        task, silo = problem.task, problem.silo
        self.problem, self.random = problem, _random(problem)
        self.buffer = problem.start.new_empty(problem.start.shape[-1])
        block, held = task.split(silo, self.buffer)
        parameters = leaves(task.blocks[silo], block)
        self.module = partial(call_with, task.blocks[silo], parameters)
        self.leaves = [*parameters.values(), *([] if held is None else [held.detach().requires_grad_()])]
        self.head = problem.head_under(None if held is None else self.leaves[-1])
        self.whole = torch.empty_like(self.buffer)  # a gradient, put together
        self.places = parameters_in(task, silo, self.whole)
        self.by_hand = TransferByHand.of(problem)

    def gradient(self, parts: Sequence[Part], number: int, step: int, _: Tensor) -> tuple[Tensor | None, None]:
        """At the buffer's numbers, for a step of the client with this number and these samples."""
        part = parts[step % len(parts)]
        if not len(part.x):
            return None, None
        self.whole.zero_()
        if self.by_hand is not None:
            found = self.by_hand.gradient(self.buffer, part)
            self.whole[: len(found)] = found  # what lies behind is the class mean, which no step moves
            return self.whole, None
        with own_masks((*self.problem.seed, step), self.problem.silo, number) if self.random else nullcontext():
            gradients = self._gradients(part)
        for place, gradient in zip(self.places, gradients, strict=True):
            if gradient is not None:
                place.copy_(gradient)
        return self.whole, None

    @torch.enable_grad()
    def _gradients(self, part: Part) -> Sequence[Tensor | None]:
        if self.problem.task.transfer is not None:
            own, anchors = self.module(part.x), self.problem.anchors
            mean = None if anchors is None else anchors.class_mean(self.module)
            at_own, at_mean = self.problem.transfer_slopes(own.detach(), None if mean is None else mean.detach(), part)
            value = (own * at_own).sum()
            if mean is not None and at_mean is not None:
                value = value + (mean * at_mean).sum()
            return gradients_of(value, self.leaves)
        outputs, gradient = self.problem.slope(self.module(part.x), part.loss_inputs, self.head)
        return gradients_of(outputs, self.leaves, gradient.div_(len(part.x)))
