"""The hubs' averages over their clients, with the local steps that lead to them.

An average needs less than every client's own block, so `local.solve` is asked for the weighted sums alone, those of all
silos and groups in one go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from crosshatch.local.problem import Problem
from crosshatch.simulator.vertical.blocks import Blocks

_ROUNDING = 1e-9  # what may be left of 1 where all clients are at work


def averaged(blocks: Sequence[Blocks]) -> tuple[Blocks, ...]:
    """The blocks of some groups, all averages that were asked for computed in one go; the others as they are."""
    sums: dict[tuple[int, int], Tensor] = {}  # by group and silo, over the clients at work
    due: list[tuple[int, int]] = []
    problems: list[Problem] = []
    weights: list[Tensor] = []
    for g, steps in enumerate(one.steps for one in blocks):
        if steps is None or steps.average is None:
            continue
        for j, problem in steps.problems.items():
            if j in steps.done:
                rows = steps.done[j]
                sums[g, j] = steps.average.at_work[j].to(rows) @ rows
            else:
                due.append((g, j))
                problems.append(problem)
                weights.append(steps.average.at_work[j])
                solver = steps.solver  # the same everywhere
    if due:
        sums |= dict(zip(due, solver(problems, weights, keep=False), strict=True))
    return tuple(_with_sums(one, g, sums) for g, one in enumerate(blocks))


def _with_sums(blocks: Blocks, group: int, sums: Mapping[tuple[int, int], Tensor]) -> Blocks:
    """The hubs' blocks from the weighted sums over the clients at work."""
    if blocks.steps is None or blocks.steps.average is None:
        return blocks
    base, idle = list(blocks.base), blocks.steps.average.idle
    for j in blocks.steps.problems:
        base[j] = add_idle(sums[group, j], base[j], idle[j])
    return Blocks(tuple(base))


def add_idle(total: Tensor, start: Tensor, idle: float) -> Tensor:
    """A weighted sum (p,), and the clients not at work with the block they would have started from; in place."""
    return total.add_(start, alpha=idle) if idle > _ROUNDING else total
