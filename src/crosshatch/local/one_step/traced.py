"""One step from a common start for any module: gradients from the graph the exchange's forward pass left behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.modules import call_with, gradients_of, parameters_in
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
    totals = [start.clone() for start in starts]
    places = [parameters_in(problem.task, problem.silo, total) for problem, total in zip(problems, totals, strict=True)]
    for (i, _), gradients in zip(work, run_each([run for _, run in work], threads=threads), strict=True):
        for place, gradient in zip(places[i], gradients, strict=True):
            if gradient is not None:
                place.sub_(gradient, alpha=problems[i].local.step_size)
    return totals


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
        outputs, gradient = problem.slope(embedding, part.loss_inputs.rows(rows), problem.head_under(held))
    return gradients_of(outputs, leaves, gradient.mul_(per_row[rows].unsqueeze(-1)))
