"""The silos' blocks as a round hands them on, and the local steps that were asked for.

`descend` asks for local steps and says so in the blocks it returns; they are computed when somebody needs them: all
clients' own blocks (`client_blocks`), the hubs' averages (`averaging.py`), or the average of several groups at once
(`joint.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from crosshatch.local.problem import Problem


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
