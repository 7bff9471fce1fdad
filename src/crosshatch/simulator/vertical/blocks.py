"""The silos' blocks as a round hands them on, and the local steps that were asked for.

`descend` asks for local steps and `average` for an average over the clients; both say so in the blocks they return.
`client_blocks` and `averaged` compute what was asked for: an average needs less than every client's own block, and many
silos' and groups' steps are computed in one go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from crosshatch.local.problem import Problem

_ROUNDING = 1e-9  # what may be left of 1 where all clients are at work


class Solver(Protocol):
    """Who computes local steps: `local.solve.solve` with its strategy and threads."""

    def __call__(self, problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool) -> list[Tensor]:
        """Each problem's weighted sum over its clients at work (p,), or with `keep` their blocks (clients, p)."""
        ...


@dataclass(frozen=True)
class Average:
    """How much clients count in their silo's average, by silo."""

    at_work: Mapping[int, Tensor]  # each client at work
    idle: Mapping[int, float]  # all others together, with the block they would have started from


@dataclass(frozen=True)
class Blocks:
    """Weights of every silo: `base[j]` (p,) at its hub, and what its clients are to make of it in this round.

    `branches[j]` (innermost branches, p) is where branches below the hub stand within a round; empty: as the hub.
    `received[j]` is what clients got of it where a codec stood in between, (p,) or one for each innermost branch;
    empty: they got just that.
    """

    base: tuple[Tensor, ...]
    steps: LocalSteps | None = None
    branches: tuple[Tensor, ...] = ()
    received: tuple[Tensor, ...] = ()

    @property
    def at_clients(self) -> tuple[Tensor, ...]:
        """By silo what its clients start from, (p,), or (innermost branches, p) where these differ."""
        return self.received or self.branches or self.base


@dataclass(frozen=True)
class LocalSteps:
    """Local steps that were asked for, by silo, and the average over its clients, if that was asked for too.

    `done` has those clients' blocks (clients at work, p) that somebody needed already.
    """

    problems: Mapping[int, Problem]
    solver: Solver
    done: dict[int, Tensor] = field(default_factory=dict)
    average: Average | None = None

    def client_blocks(self) -> dict[int, Tensor]:
        """Each silo's clients' blocks (clients at work, p)."""
        due = {j: problem for j, problem in self.problems.items() if j not in self.done}
        if due:
            ones = [torch.ones(problem.clients, dtype=torch.float64) for problem in due.values()]
            self.done.update(zip(due, self.solver(list(due.values()), ones, keep=True), strict=True))
        return {j: self.done[j] for j in self.problems}

    def and_then(self, problems: Mapping[int, Problem]) -> LocalSteps:
        """The steps so far of other silos, and these."""
        done = {j: rows for j, rows in self.client_blocks().items() if j not in problems}
        return LocalSteps({**self.problems, **problems}, self.solver, done)


def averaged(blocks: Sequence[Blocks]) -> tuple[Blocks, ...]:
    """The blocks of some groups, all averages that were asked for computed in one go; the others as they are."""
    sums: dict[tuple[int, int], Tensor] = {}  # by group and silo, over the clients at work
    due: list[tuple[int, int]] = []
    problems: list[Problem] = []
    weights: list[Tensor] = []
    asked = {g: one.steps for g, one in enumerate(blocks) if one.steps is not None}
    for g, steps in asked.items():
        for j, problem in steps.problems.items() if steps.average is not None else ():
            assert steps.average is not None
            if j in steps.done:
                rows = steps.done[j]
                sums[g, j] = steps.average.at_work[j].to(rows) @ rows
            else:
                due.append((g, j))
                problems.append(problem)
                weights.append(steps.average.at_work[j])
    if due:
        sums |= dict(zip(due, asked[due[0][0]].solver(problems, weights, keep=False), strict=True))
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
