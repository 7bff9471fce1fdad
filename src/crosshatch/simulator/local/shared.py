"""One step from a common start: all clients' copies are equal, so one pass over the whole batch serves them all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from crosshatch.simulator.local.problem import Problem


def can_share(problem: Problem) -> bool:
    """Whether the weighted sum over the clients follows from one pass."""
    common = problem.steps == 1 and problem.start.dim() == 1
    # The proximal step is not linear, so its average needs every client's own block.
    return common and (problem.clients == 1 or problem.task.regulariser.l1 == 0)


def solve_shared(problem: Problem, weights: Tensor, *, threads: int) -> Tensor:
    """Weighted sum (p,) of the clients' blocks after one step."""
    part = problem.part(0)
    counts = torch.as_tensor(part.counts, device=weights.device)
    per_row = (weights / counts.clamp(min=1)).repeat_interleave(counts)
    passes = problem.passes
    assert passes is not None
    _, head = problem.task.split(problem.silo, passes.leaf)
    head = problem.head if head is None else head

    def gradient(piece: tuple[slice, Tensor]) -> Tensor:
        rows, embedding = piece
        loss = problem.loss(embedding, part.known.rows(rows), head, per_row[rows])
        (out,) = torch.autograd.grad(loss, passes.leaf)
        return out

    if threads > 1 and len(passes.pieces) > 1:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            gradients = list(pool.map(gradient, passes.pieces))
    else:
        gradients = [gradient(piece) for piece in passes.pieces]
    eta, regulariser = problem.step_size, problem.task.regulariser
    moving = float(weights[counts > 0].sum())
    total = problem.start * (float(weights.sum()) - eta * regulariser.l2 * moving)
    for one in gradients:
        total.sub_(one, alpha=eta)
    if regulariser.l1 and moving:  # one client only, see can_share
        total = regulariser.proximal(total / moving, eta) * moving
    return total
