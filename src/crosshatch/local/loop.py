"""The lean loop: one client after the other on a module of its thread, for any `nn.Module`.

Parameters are views of one flat buffer, counts are exact (nothing is padded), and memory does not grow with the number
of clients. The clients of all silos are cut into runs; threads take whole runs, each with one thread inside torch. Sums
are taken in client order within a run and then over the runs. The runs are the same for any number of threads, and so
are the sums, bit for bit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.local.masks import own_masks
from crosshatch.local.modules import Replica, trained_views, untrained
from crosshatch.local.moments import Moments
from crosshatch.local.pool import run_each
from crosshatch.local.problem import Part, Problem
from crosshatch.local.read_chain import draws_random_numbers
from crosshatch.task.outputs import checked

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
    starts = problem.start.expand(problem.clients, -1)
    width = starts.shape[1] + (0 if problem.state is None else problem.state.shape[1])
    total = worker.buffer.new_empty((len(clients), width) if keep else (width,))
    parts, offsets = problem.parts, [part.offsets.tolist() for part in problem.parts]
    for i, client in enumerate(clients):
        mine = [part.rows(edges[client], edges[client + 1]) for part, edges in zip(parts, offsets, strict=True)]
        if problem.state is not None:
            worker.moments = Moments.of(problem.task.optimiser, problem.state[client])
        worker.work(mine, starts[client], problem.number(client))
        if worker.moments is not None:
            total[i] = worker.moments.behind(worker.buffer)
        elif keep:
            total[i] = worker.buffer
        elif i:
            total.add_(worker.buffer, alpha=client_weights[client])
        else:
            torch.mul(worker.buffer, client_weights[client], out=total)
    return total


def _call(template: nn.Module, replica: nn.Module, x: Tensor) -> Tensor:
    return checked(template, replica(x), x)


class _Worker:
    """A module and its flat buffer (p,), serving one client after the other."""

    def __init__(self, problem: Problem) -> None:
        task, silo = problem.task, problem.silo
        self.problem = problem
        self.buffer = problem.start.new_empty(problem.start.shape[-1])
        self.block, self.held = task.split(silo, self.buffer)
        replica = Replica(task.blocks[silo], self.block)
        self.module, self.trained = partial(_call, task.blocks[silo], replica.module), replica.trained
        self.head: Callable[[Tensor], Tensor] | None = None
        flat = problem.head if self.held is None else self.held
        if task.head is not None and flat is not None:
            head = Replica(task.head, flat)
            self.head = partial(_call, task.head, head.module)
            self.trained = self.trained + ([] if self.held is None else head.trained)
        self.frozen, self.free = untrained(task, silo), task.free[silo]
        self.random = _random(problem)
        self.moments: Moments | None = None  # of the client at work, where there is an optimiser

    def work(self, parts: Sequence[Part], start: Tensor, number: int) -> None:
        """All steps of the client with this number and these samples, from its start (p,)."""
        problem = self.problem
        self.buffer.copy_(start)
        for step in range(problem.local.first, problem.local.first + problem.local.steps):
            part = parts[step % len(parts)]
            if len(part.x):
                with own_masks((*problem.seed, step), problem.silo, number) if self.random else nullcontext():
                    gradients = self._gradients(part)
                if self.moments is None:
                    self._step(gradients, start)
                else:
                    self._optimise(gradients, start, self.moments)
        if problem.anchors is not None:
            assert self.held is not None
            with torch.no_grad():
                self.held.copy_(problem.anchors.class_mean(self.module, every=True))

    @torch.enable_grad()
    def _gradients(self, part: Part) -> Sequence[Tensor | None]:
        if self.problem.task.transfer is not None:
            loss = self.problem.transfer_loss(self.module, part)
            return torch.autograd.grad(loss, self.trained, allow_unused=True)
        outputs, gradient = self.problem.slope(self.module(part.x), part.loss_inputs, self.head)
        return torch.autograd.grad(outputs, self.trained, gradient.div_(len(part.x)), allow_unused=True)

    def _step(self, gradients: Sequence[Tensor | None], start: Tensor) -> None:
        """One gradient step on the buffer the parameters are views of."""
        problem, eta, regulariser = self.problem, self.problem.local.step_size, self.problem.task.regulariser
        left_alone = None if self.free is None else self.block.masked_fill(~self.free, 0.0)
        if regulariser.l2 or problem.local.proximal:
            self.block.mul_(1 - eta * (regulariser.l2 + problem.local.proximal))
        if left_alone is not None:
            self.block.add_(left_alone, alpha=eta * regulariser.l2)
        if problem.local.proximal:
            if self.held is not None:
                self.held.mul_(1 - eta * problem.local.proximal)
            self.buffer.add_(start, alpha=eta * problem.local.proximal)
        for parameter, gradient in zip(self.trained, gradients, strict=True):
            if gradient is not None:
                parameter.sub_(gradient, alpha=eta)
        if regulariser.l1:
            self.block.copy_(regulariser.proximal(self.block, eta, self.free))
        for where in self.frozen:
            self.buffer[where] = start[where]

    def _optimise(self, gradients: Sequence[Tensor | None], start: Tensor, moments: Moments) -> None:
        """One step along what the optimiser makes of the gradient."""
        problem, regulariser = self.problem, self.problem.task.regulariser
        whole = torch.zeros_like(self.buffer)
        for view, gradient in zip(trained_views(problem.task, problem.silo, whole), gradients, strict=True):
            if gradient is not None:
                view.copy_(gradient)
        if regulariser.l2:
            whole[: len(self.block)].add_(regulariser.gradient(self.block, self.free))
        if problem.local.proximal:
            whole.add_(self.buffer - start, alpha=problem.local.proximal)
        for where in self.frozen:
            whole[where] = 0
        direction, self.moments = moments.after(whole)
        self.buffer.sub_(direction, alpha=problem.local.step_size)
