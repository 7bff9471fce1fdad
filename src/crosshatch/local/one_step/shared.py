"""One step from a common start: all clients' copies are equal, so one pass over the whole batch serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.layers import backward, flat_gradient, split
from crosshatch.local.modules import frozen
from crosshatch.local.one_step.traced import descend_by_graph, head_of
from crosshatch.local.problem import Part, Pile, Problem

Numbers = npt.NDArray[np.floating]


def can_share(problem: Problem) -> bool:
    """Whether the weighted sum over the clients follows from one pass."""
    common = problem.steps == 1 and problem.starts_from_passes
    # The proximal step is not linear, so its average needs every client's own block.
    return common and (problem.clients == 1 or problem.task.regulariser.l1 == 0)


def solve_shared(problems: Sequence[Problem], weights: Sequence[Tensor], *, threads: int) -> list[Tensor]:
    """Each silo's weighted sum (p,) of its clients' blocks after one step; silos whose passes are one pile together."""
    if _complete(problems):
        return _solve(problems, weights, threads)
    groups: dict[int, list[int]] = {}
    for i, problem in enumerate(problems):
        assert problem.passes is not None
        groups.setdefault(id(problem.passes.pile), []).append(i)
    results: dict[int, Tensor] = {}
    for members in groups.values():
        together = [problems[i] for i in members]
        one_by_one = together[0].passes is not None and together[0].passes.pile is not None and not _complete(together)
        for group in [[i] for i in members] if one_by_one else [members]:
            solved = _solve([problems[i] for i in group], [weights[i] for i in group], threads)
            results.update(zip(group, solved, strict=True))
    return [results[i] for i in range(len(problems))]


def _complete(problems: Sequence[Problem]) -> bool:
    """Whether these problems are about all silos of one pile, and alike in what else they know."""
    passes = problems[0].passes
    pile = None if passes is None else passes.pile
    if pile is None or pile.weights.shape[0] != len(problems):
        return False
    in_order = problems[0].part(0).owners is None
    return all(
        problem.passes is not None and problem.passes.pile is pile and (problem.part(0).owners is None) == in_order
        for problem in problems
    )


def _solve(problems: Sequence[Problem], weights: Sequence[Tensor], threads: int) -> list[Tensor]:
    """The sums for all problems of a pile, for one of them, or for any with a graph."""
    first = problems[0]
    passes, eta, regulariser = first.passes, first.step_size, first.task.regulariser
    assert passes is not None
    pile = passes.pile.one(passes.place) if passes.pile is not None and len(problems) == 1 else passes.pile
    parts = [problem.part(0) for problem in problems]
    lengths = [len(part.counts) for part in parts]
    begins = [0, *accumulate(lengths[:-1])]
    counts, each = np.concatenate([part.counts for part in parts]), np.concatenate([one.numpy() for one in weights])
    per_client = each / np.maximum(counts, 1)
    # Clients without rows stay where they are; the others' blocks shrink and move.
    kept = np.add.reduceat(each, begins).tolist()
    keeps = kept
    if regulariser.l2:
        keeps = np.add.reduceat(each * (1 - eta * regulariser.l2 * (counts > 0)), begins).tolist()
    starts = [_shrunk(problem, *factors) for problem, *factors in zip(problems, keeps, kept, strict=True)]
    # Each silo's block for itself: tensors inside others are aligned differently, and kernels may round differently.
    if pile is not None:
        gradients = _by_hand(problems, pile, _per_row(parts, per_client, begins, first.start))
        totals = [torch.sub(start, gradient, alpha=eta) for start, gradient in zip(starts, gradients, strict=True)]
    else:
        per_row = [
            _per_row([part], per_client[begin : begin + length], [0], first.start)[0]
            for part, begin, length in zip(parts, begins, lengths, strict=True)
        ]
        totals = descend_by_graph(problems, starts, per_row, threads=threads)
    if regulariser.l1 and counts.all():  # one client each, see can_share
        for problem, total, one in zip(problems, totals, each.tolist(), strict=True):
            block, _ = problem.task.split(problem.silo, total)
            block.copy_(regulariser.proximal(block / one, eta) * one)
    if pile is None or first.task.head is not None:  # a chain is trained as a whole
        for problem, total, factor in zip(problems, totals, kept, strict=True):
            for where in frozen(problem.task, problem.silo):
                total[where] = _scaled(problem.start[where], factor)
    return totals


def _shrunk(problem: Problem, block: float, head: float) -> Tensor:
    """The start with its block and the head it may hold scaled by their factors."""
    own, held = problem.task.split(problem.silo, problem.start)
    if held is None or block == head:
        return _scaled(problem.start, block)
    return torch.cat([_scaled(own, block), _scaled(held, head)])


def _scaled(start: Tensor, keep: float) -> Tensor:
    """`keep` is a sum of shares: 1 but for rounding where everybody is at work."""
    return start if abs(keep - 1) < 1e-12 else start * keep


def _per_row(parts: Sequence[Part], per_client: Numbers, begins: Sequence[int], like: Tensor) -> Tensor:
    """The clients' numbers, one silo's behind another's, as numbers of their rows (problems, n)."""
    owners = [part.owners for part in parts if part.owners is not None]
    per_client = per_client.astype(np.float64 if like.dtype == torch.float64 else np.float32)
    if owners:
        places = np.array(owners)
        places += np.array(begins)[:, np.newaxis]
        per_row = per_client.take(places)
    else:
        per_row = per_client.repeat(np.concatenate([part.counts for part in parts])).reshape(len(parts), -1)
    return torch.from_numpy(per_row).to(like.device)


def _by_hand(problems: Sequence[Problem], pile: Pile, per_row: Tensor) -> Tensor:
    """Gradients (problems, p) for chains alike."""
    first, chain, outputs = problems[0], pile.chain, pile.outputs
    derivative = first.part(0).known.derivative
    head: Tensor | None = None
    if derivative is not None and all(problem.part(0).known.derivative is derivative for problem in problems):
        gradient = derivative * per_row.unsqueeze(-1)
    else:
        pairs = [_at_embedding(p, own, rows) for p, own, rows in zip(problems, outputs[-1], per_row, strict=True)]
        gradient, head = torch.stack([at_own for at_own, _ in pairs]), pairs[0][1]
    layers = split(pile.weights, chain) if len(chain) > 1 else []  # nothing goes back through a first layer
    gradients, _ = backward(chain, layers, outputs, gradient, need_input=False)
    flat = flat_gradient(chain, [pile.x, *outputs[:-1]], gradients)
    return flat if head is None else torch.cat([flat, head.unsqueeze(0)], dim=1)  # who holds the head is alone


def _at_embedding(problem: Problem, own: Tensor, per_row: Tensor) -> tuple[Tensor, Tensor | None]:
    """Gradient at the block's outputs (n, e), and that of a head held here."""
    known, task = problem.part(0).known, problem.task
    if known.derivative is not None or task.head is None:
        return problem.derivative(own, known).mul_(per_row.unsqueeze(-1)), None
    _, held = task.split(problem.silo, problem.start.detach())
    own = own.detach().requires_grad_()
    with torch.enable_grad():
        held = None if held is None else held.requires_grad_()
        loss = problem.loss(own, known, head_of(problem, held), per_row)
    gradients = torch.autograd.grad(loss, [own] if held is None else [own, held])
    return gradients[0], gradients[1] if held is not None else None
