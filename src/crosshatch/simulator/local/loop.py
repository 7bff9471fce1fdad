"""The lean loop: one client after the other on a module of its thread, for any `nn.Module`.

Parameters are views of one flat buffer, counts are exact (nothing is padded), and memory does not grow with the number
of clients. The clients of all silos are cut into runs; threads take whole runs, each with one thread inside torch. Sums
are taken in client order within a run and then over the runs, so equal runs with equal threads agree bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.seeds import torch_seed
from crosshatch.simulator.local.chain import draws_random_numbers
from crosshatch.simulator.local.modules import Replica, frozen
from crosshatch.simulator.local.pool import run_all
from crosshatch.simulator.local.problem import Part, Problem
from crosshatch.task.fusion import Head

_RUNS = 4  # a thread: enough that none waits long for the last


def solve_loop(problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, threads: int) -> list[Tensor]:
    """Each silo's clients' blocks after their steps: weighted sum (p,), or with `keep` all of them (clients, p)."""
    if any(_random(problem) for problem in problems):
        threads = 1  # torch has one generator for all threads
    work = []
    for problem, shares in zip(problems, weights, strict=True):
        parts = [part.ordered() for part in problem.parts]
        rows = np.sum([part.counts for part in parts], axis=0)
        runs = _runs(rows, 1 if threads == 1 else -(-_RUNS * threads // len(problems)))
        work.append([partial(_run, problem, parts, shares, run, keep) for run in runs])
    done = iter(run_all([run for mine in work for run in mine], threads=threads))
    results = []
    for mine in work:
        pieces = [next(done) for _ in mine]
        results.append(torch.cat(pieces) if keep else torch.stack(pieces).sum(0))
    return results


def _random(problem: Problem) -> bool:
    return draws_random_numbers(problem.task.blocks[problem.silo], problem.parts[0].x[:1])


def _runs(rows: np.ndarray[tuple[int], np.dtype[np.int64]], count: int) -> list[range]:
    """Contiguous runs of clients with about the same number of rows."""
    total = np.cumsum(rows)
    cuts = [int(np.searchsorted(total, total[-1] * t / count)) for t in range(1, count)]
    edges = [0, *cuts, len(rows)]
    return [range(low, high) for low, high in pairwise(edges) if high > low]


def _run(problem: Problem, parts: Sequence[Part], weights: Tensor, clients: range, keep: bool) -> Tensor:
    """Weighted sum (p,) over some of the clients, or their blocks (clients, p)."""
    worker = _Worker(problem)
    starts = problem.start.expand(problem.clients, -1)
    total = worker.buffer.new_zeros((len(clients), starts.shape[1]) if keep else (starts.shape[1],))
    offsets = [part.offsets for part in parts]
    random = _random(problem)
    for i, client in enumerate(clients):
        worker.restart(starts[client])
        with torch.random.fork_rng(devices=[], enabled=random):
            if random:
                seed, *numbers = problem.seed
                torch.manual_seed(torch_seed(seed, "dropout", *numbers, problem.silo, problem.first, client))
            for step in range(problem.steps):
                which = (problem.first + step) % len(parts)
                rows = slice(int(offsets[which][client]), int(offsets[which][client + 1]))
                if rows.stop > rows.start:
                    worker.step(parts[which], rows, starts[client])
        if keep:
            total[i] = worker.buffer
        else:
            total.add_(worker.buffer, alpha=float(weights[client]))
    return total


class _Worker:
    """A module and its flat buffer (p,), serving one client after the other."""

    def __init__(self, problem: Problem) -> None:
        task, silo = problem.task, problem.silo
        self.problem = problem
        self.buffer = problem.start.new_empty(problem.start.shape[-1])
        block, head = task.split(silo, self.buffer)
        replica = Replica(task.blocks[silo], block)
        self.module, self.trained = replica.module, replica.trained
        self.head: nn.Module | None = None
        if isinstance(task.fusion, Head):
            flat = problem.head if head is None else head
            assert flat is not None
            held = Replica(task.fusion.module, flat)
            self.head = held.module
            self.trained += [] if head is None else held.trained
        self.frozen = frozen(task, silo)

    @torch.no_grad()
    def restart(self, start: Tensor) -> None:
        """Begin with another client."""
        self.buffer.copy_(start)

    def step(self, part: Part, rows: slice, start: Tensor) -> None:
        """One gradient step on the buffer the parameters are views of."""
        problem, eta = self.problem, self.problem.step_size
        with torch.enable_grad():
            loss = problem.loss(self.module(part.x[rows]), part.known.rows(rows), self.head)
        gradients = torch.autograd.grad(loss, self.trained, allow_unused=True)
        regulariser = problem.task.regulariser
        with torch.no_grad():
            if regulariser.l2 or problem.pull:
                self.buffer.mul_(1 - eta * (regulariser.l2 + problem.pull))
            if problem.pull:
                self.buffer.add_(start, alpha=eta * problem.pull)
            for parameter, gradient in zip(self.trained, gradients, strict=True):
                if gradient is not None:
                    parameter.sub_(gradient, alpha=eta)
            if regulariser.l1:
                self.buffer.copy_(regulariser.proximal(self.buffer, eta))
            for where in self.frozen:
                self.buffer[where] = start[where]
