"""One step from a common start: all clients' copies are equal, so one pass over the whole batch serves them all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from crosshatch.simulator.local.chain import as_chain
from crosshatch.simulator.local.layers import backward, split
from crosshatch.simulator.local.modules import call, frozen
from crosshatch.simulator.local.pool import run_all
from crosshatch.simulator.local.problem import Passes, Problem
from crosshatch.task.fusion import Head, Sum


def can_share(problem: Problem) -> bool:
    """Whether the weighted sum over the clients follows from one pass."""
    common = problem.steps == 1 and problem.starts_from_passes
    # The proximal step is not linear, so its average needs every client's own block.
    return common and (problem.clients == 1 or problem.task.regulariser.l1 == 0)


def solve_shared(problem: Problem, weights: Tensor, *, threads: int) -> Tensor:
    """Weighted sum (p,) of the clients' blocks after one step."""
    part, passes = problem.part(0), problem.passes
    assert passes is not None
    eta, regulariser = problem.step_size, problem.task.regulariser
    each = weights.cpu().numpy()
    per_row = part.per_row(torch.as_tensor(each / np.maximum(part.counts, 1)).to(problem.start))
    # Clients without rows stay where they are; the others shrink and move.
    whole, moving = float(each.sum()), float(each @ (part.counts > 0))
    keeps = whole - eta * regulariser.l2 * moving
    if passes.outputs:
        total = _by_hand(problem, passes, per_row, keeps)
    else:
        total = problem.start * keeps
        for gradient in _by_graph(problem, passes, per_row, threads):
            total.sub_(gradient, alpha=eta)
    if regulariser.l1 and moving:  # one client only, see can_share
        total = regulariser.proximal(total / moving, eta) * moving
    if not passes.outputs or isinstance(problem.task.fusion, Head):  # a chain is trained as a whole
        for where in frozen(problem.task, problem.silo):
            total[where] = problem.start[where] * whole
    return total


def _by_hand(problem: Problem, passes: Passes, per_row: Tensor, keeps: float) -> Tensor:
    """The step of a chain: `keeps` times the start, minus step size times the gradient."""
    chain = as_chain(problem.task.blocks[problem.silo])
    assert chain is not None
    part, eta = problem.part(0), problem.step_size
    gradient, head_gradient = _at_embedding(problem, passes.outputs[-1].squeeze(0), per_row)
    total = problem.start.clone()
    x = part.x.flatten(1).unsqueeze(0)
    layers = split(total.unsqueeze(0), chain)
    backward(chain, layers, passes.outputs, x, gradient.unsqueeze(0), eta, keeps, need_input=False)
    if head_gradient is not None:
        total[-len(head_gradient) :].mul_(keeps).sub_(head_gradient, alpha=eta)
    return total


def _at_embedding(problem: Problem, own: Tensor, per_row: Tensor) -> tuple[Tensor, Tensor | None]:
    """Gradient at the block's outputs (n, e), and that of a head held here."""
    known, task = problem.part(0).known, problem.task
    if known.derivative is not None or isinstance(task.fusion, Sum):
        return problem.derivative(own, known).mul_(per_row.unsqueeze(-1)), None
    _, held = task.split(problem.silo, problem.start.detach())
    own = own.detach().requires_grad_()
    with torch.enable_grad():
        held = None if held is None else held.requires_grad_()
        loss = problem.loss(own, known, _head(problem, held), per_row)
    gradients = torch.autograd.grad(loss, [own] if held is None else [own, held])
    return gradients[0], gradients[1] if held is not None else None


def _head(problem: Problem, held: Tensor | None) -> Callable[[Tensor], Tensor] | None:
    """The head under the weights held here or else as received; None for a sum."""
    fusion = problem.task.fusion
    flat = problem.head if held is None else held
    return partial(call, fusion.module, flat) if isinstance(fusion, Head) and flat is not None else None


def _by_graph(problem: Problem, passes: Passes, per_row: Tensor, threads: int) -> list[Tensor]:
    """Gradients (p,) of the pieces of the pass, those not kept computed anew."""
    part, task, silo = problem.part(0), problem.task, problem.silo

    def gradient(rows: slice, kept: Tensor | None) -> Tensor:
        with torch.enable_grad():
            block, held = task.split(silo, passes.leaf)
            embedding = call(task.blocks[silo], block, part.x[rows]) if kept is None else kept
            loss = problem.loss(embedding, part.known.rows(rows), _head(problem, held), per_row[rows])
        (out,) = torch.autograd.grad(loss, passes.leaf)
        return out

    return run_all([partial(gradient, rows, kept) for rows, kept in passes.pieces], threads=threads)
