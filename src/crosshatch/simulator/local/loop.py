"""The lean loop: one client after the other on one reusable module, for any `nn.Module`.

Parameters are views of one flat buffer, counts are exact (nothing is padded), and memory does not grow with the number of
clients. Threads take contiguous runs of clients, each with one thread inside torch; the sum is taken in client order
within a thread and then over the threads, so equal runs with equal threads agree bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.simulator.local.problem import Problem
from crosshatch.trees import Layout


class Replica:
    """A module whose parameters are views of one flat buffer `weights`."""

    def __init__(self, module: nn.Module, weights: Tensor) -> None:
        """Copy the module and bind its parameters to the buffer."""
        self.module = copy.deepcopy(module)
        self.parameters: list[nn.Parameter] = []
        for name, view in Layout.of(module).views(weights).items():
            parameter = self.module.get_parameter(name)
            parameter.data = view
            self.parameters.append(parameter)


def solve_loop(problem: Problem, weights: Tensor, *, keep: bool, threads: int) -> Tensor:
    """The clients' blocks after their steps: weighted sum (p,), or with `keep` all of them (clients, p)."""
    runs = _balanced_runs(sum(np.asarray(part.counts) for part in problem.parts), threads)
    if len(runs) == 1:
        pieces = [_run(problem, weights, runs[0], keep)]
    else:
        with ThreadPoolExecutor(len(runs), initializer=torch.set_num_threads, initargs=(1,)) as pool:
            pieces = list(pool.map(lambda run: _run(problem, weights, run, keep), runs))
    return torch.cat(pieces) if keep else torch.stack(pieces).sum(0)


def _balanced_runs(rows: np.ndarray[tuple[int], np.dtype[np.int64]], threads: int) -> list[range]:
    """Contiguous runs of clients with about the same number of rows, one a thread."""
    total = np.cumsum(rows)
    cuts = [int(np.searchsorted(total, total[-1] * t / threads)) for t in range(1, threads)]
    edges = [0, *cuts, len(rows)]
    return [range(low, high) for low, high in zip(edges, edges[1:], strict=False) if high > low]


def _run(problem: Problem, weights: Tensor, clients: range, keep: bool) -> Tensor:
    task, silo = problem.task, problem.silo
    size = problem.start.shape[-1]
    buffer = torch.empty(size, dtype=problem.start.dtype, device=problem.start.device)
    block, head = task.split(silo, buffer)
    replica = Replica(task.blocks[silo], block)
    trained: list[Tensor] = list(replica.parameters)
    if head is None:
        head = problem.head
    else:
        head.requires_grad_()
        trained.append(head)
    starts = problem.start.expand(problem.clients, size)
    total = buffer.new_zeros((len(clients), size) if keep else (size,))
    offsets = [part.offsets for part in problem.parts]
    for i, client in enumerate(clients):
        with torch.no_grad():
            buffer.copy_(starts[client])
        for step in range(problem.steps):
            which = (problem.first + step) % len(problem.parts)
            rows = slice(int(offsets[which][client]), int(offsets[which][client + 1]))
            if rows.stop > rows.start:
                _step(
                    problem,
                    replica.module,
                    trained,
                    head,
                    problem.parts[which].x[rows],
                    which,
                    rows,
                    buffer,
                    starts[client],
                )
        with torch.no_grad():
            if keep:
                total[i] = buffer
            else:
                total.add_(buffer, alpha=float(weights[client]))
    return total


def _step(
    problem: Problem,
    module: nn.Module,
    trained: Sequence[Tensor],
    head: Tensor | None,
    x: Tensor,
    which: int,
    rows: slice,
    buffer: Tensor,
    start: Tensor,
) -> None:
    """One gradient step on the buffer the parameters are views of."""
    loss = problem.loss(module(x), problem.parts[which].known.rows(rows), head)
    gradients = torch.autograd.grad(loss, trained)
    regulariser, eta = problem.task.regulariser, problem.step_size
    with torch.no_grad():
        if regulariser.l2 or problem.pull:
            shrink = 1 - eta * (regulariser.l2 + problem.pull)
            buffer.mul_(shrink)
            if problem.pull:
                buffer.add_(start, alpha=eta * problem.pull)
        for parameter, gradient in zip(trained, gradients, strict=True):
            parameter.sub_(gradient, alpha=eta)
        if regulariser.l1:
            buffer.copy_(regulariser.proximal(buffer, eta))
