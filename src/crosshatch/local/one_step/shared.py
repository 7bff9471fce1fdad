"""One step from a common start: all clients' copies are equal, so one pass over the whole batch serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.layers import ChainPass
from crosshatch.local.one_step.traced import descend_by_graph
from crosshatch.local.problem import LossInputs, Problem


def solve_shared(
    problems: Sequence[Problem], weights: Sequence[Tensor], passes: Sequence[KeptPass], *, threads: int
) -> list[Tensor]:
    """Each silo's weighted sum (p,) of its clients' blocks after one step; silos of one chain pass together."""
    groups: dict[int, list[int]] = {}
    for i, kept in enumerate(passes):
        groups.setdefault(id(kept.chain_pass), []).append(i)
    results: dict[int, Tensor] = {}
    for members in groups.values():
        for group in [members] if solve_together(passes[members[0]].chain_pass, members) else [[i] for i in members]:
            chosen = [passes[i] for i in group]
            solved = _solve([problems[i] for i in group], [weights[i] for i in group], chosen, threads)
            results.update(zip(group, solved, strict=True))
    return [results[i] for i in range(len(problems))]


def solve_together(chain_pass: ChainPass | None, members: Sequence[int]) -> bool:
    """Whether these problems are about all silos of a chain pass, or about graphs."""
    return chain_pass is None or len(chain_pass.weights) == len(members)


def _solve(
    problems: Sequence[Problem], weights: Sequence[Tensor], passes: Sequence[KeptPass], threads: int
) -> list[Tensor]:
    """The sums for all problems of a chain pass, for one of them, or for any with a graph."""
    first, chain_pass = problems[0], passes[0].chain_pass
    eta, regulariser = first.local.step_size, first.task.regulariser
    if chain_pass is not None and len(problems) < len(chain_pass.weights):
        chain_pass = chain_pass.one(passes[0].place)
    parts = [problem.parts[0] for problem in problems]
    begins = [0, *accumulate(len(part.counts) for part in parts[:-1])]
    counts, each = np.concatenate([part.counts for part in parts]), np.concatenate([one.numpy() for one in weights])
    per_client = (each / np.maximum(counts, 1)).astype(np.float64 if first.start.dtype == torch.float64 else np.float32)
    per_row = torch.from_numpy(per_client.repeat(counts)).to(first.start.device)
    kept = np.add.reduceat(each, begins).tolist()
    starts = [_scaled(problem.start, factor) for problem, factor in zip(problems, kept, strict=True)]
    # Each silo's block for itself: tensors inside others are aligned differently, and kernels may round differently.
    if chain_pass is not None:
        gradients = _by_hand(problems, chain_pass, per_row.view(len(problems), -1))
        totals = [torch.sub(start, gradient, alpha=eta) for start, gradient in zip(starts, gradients, strict=True)]
    else:
        by_problem = torch.split(per_row, [len(part.x) for part in parts])
        totals = descend_by_graph(problems, passes, starts, by_problem, threads=threads)
    if regulariser.l2:  # clients without rows stay where they are
        moving = np.add.reduceat(each * (counts > 0), begins).tolist()
        for problem, total, weight in zip(problems, totals, moving, strict=True):
            free, ends = problem.task.free[problem.silo], (problem.start, total)
            before, after = (problem.task.split(problem.silo, end)[0] for end in ends)
            after.sub_(regulariser.gradient(before, free), alpha=eta * weight)
    if regulariser.l1 and counts.all():  # one client each, see served_by_one_pass
        for problem, total, one in zip(problems, totals, each.tolist(), strict=True):
            block, _ = problem.task.split(problem.silo, total)
            block.copy_(regulariser.proximal(block / one, eta, problem.task.free[problem.silo]) * one)
    for problem, total, factor in zip(problems, totals, kept, strict=True):
        if (trained := problem.task.trained[problem.silo]) is not None:
            total.copy_(_scaled(problem.start, factor).index_copy(0, trained, total.index_select(0, trained)))
    return totals


def _scaled(start: Tensor, keep: float) -> Tensor:
    """`keep` is a sum of clients' weights: 1 but for rounding where everybody is at work."""
    return start if abs(keep - 1) < 1e-12 else start * keep


def _by_hand(problems: Sequence[Problem], chain_pass: ChainPass, per_row: Tensor) -> Tensor:
    """Gradients (problems, p) of problems with equal chains."""
    own, inputs = chain_pass.outputs[-1], [problem.parts[0].loss_inputs for problem in problems]
    sent = [one.derivative is not None for one in inputs]
    if all(sent) or (problems[0].task.head is None and not any(sent)):
        at_own = problems[0].derivative(own, LossInputs.joined(inputs, torch.stack))
        return chain_pass.gradient(at_own.mul_(per_row.unsqueeze(-1)))
    pairs = [_at_embedding(p, mine, rows) for p, mine, rows in zip(problems, own, per_row, strict=True)]
    flat = chain_pass.gradient(torch.stack([at_own for at_own, *_ in pairs]))
    return torch.cat([flat, *(at_head.unsqueeze(0) for at_head in pairs[0][1:])], dim=1)  # who holds the head is alone


def _at_embedding(problem: Problem, own: Tensor, per_row: Tensor) -> tuple[Tensor, ...]:
    """Gradient at the block's outputs (n, e), and that of a head held here."""
    held = problem.task.split(problem.silo, problem.start.detach())[1]
    leaves = [one.detach().requires_grad_() for one in (own, held) if one is not None]
    with torch.enable_grad():
        head = problem.head_under(None if held is None else leaves[1])
        scores, gradient = problem.slope(leaves[0], problem.parts[0].loss_inputs, head)
    return torch.autograd.grad(scores, leaves, gradient.mul_(per_row.unsqueeze(-1)))
