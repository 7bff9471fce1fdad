"""One step from a common start for any module: gradients from the graph the exchange's forward pass left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.modules import call, call_with
from crosshatch.local.pool import run_each
from crosshatch.local.problem import Problem


def descend_by_graph(
    problems: Sequence[Problem],
    passes: Sequence[KeptPass],
    starts: Sequence[Tensor],
    per_row: Sequence[Tensor],
    *,
    threads: int,
) -> list[Tensor]:
    """From each start (p,) one step down the gradient of its problem's losses, each row's under its weight in (n,).

    Threads take the pieces of all problems; gradients are subtracted one parameter at a time, in the pieces' order.
    """
    work = []
    for i, (problem, kept) in enumerate(zip(problems, passes, strict=True)):
        pieces = kept.pieces
        work += [(i, partial(_gradients, problem, kept, rows, embedding, per_row[i])) for rows, embedding in pieces]
        pieces[:] = [(rows, None) for rows, _ in pieces]  # a graph can be gone back through once
    totals = [torch.empty_like(start) for start in starts]
    now = list(starts)  # where each stands: what a first piece starts from is not copied
    for (i, _), gradients in zip(work, run_each([run for _, run in work], threads=threads), strict=True):
        places = (_parameters(problems[i], flat) for flat in (totals[i], now[i]))
        for target, before, gradient in zip(*places, gradients, strict=True):
            if gradient is not None:
                torch.sub(before, gradient, alpha=problems[i].local.step_size, out=target)
            elif now[i] is not totals[i]:
                target.copy_(before)
        now[i] = totals[i]
    return totals


def head_of(problem: Problem, held: Tensor | None) -> Callable[[Tensor], Tensor] | None:
    """The head under the weights held here or else as received; None for a sum."""
    head = problem.task.head
    flat = problem.head if held is None else held
    return None if head is None or flat is None else partial(call, head, flat)


def _gradients(
    problem: Problem, kept: KeptPass, rows: slice, embedding: Tensor | None, per_row: Tensor
) -> list[Tensor | None]:
    """The gradients from one piece of the pass: of each parameter of the block, and of the head if it is held here."""
    part, block = problem.parts[0], problem.task.blocks[problem.silo]
    leaves = list(kept.leaves.values())
    held = problem.task.split(problem.silo, problem.start.detach())[1]
    if held is not None:
        leaves.append(held.requires_grad_())
    with torch.enable_grad():
        if embedding is None:
            embedding = call_with(block, kept.leaves, part.x[rows])
        outputs, gradient = problem.slope(embedding, part.loss_inputs.rows(rows), head_of(problem, held))
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    gradient.mul_(per_row[rows].unsqueeze(-1))
    found = iter(torch.autograd.grad(outputs, wanted, gradient, allow_unused=True))
    return [next(found) if leaf.requires_grad else None for leaf in leaves]


def _parameters(problem: Problem, flat: Tensor) -> list[Tensor]:
    """The block's parameters in a flat vector (p,), and the head in one piece if it is held here."""
    block, held = problem.task.split(problem.silo, flat)
    views = problem.task.layouts[problem.silo].views(block)
    return [*views.values(), *([] if held is None else [held])]
