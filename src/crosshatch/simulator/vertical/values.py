"""The simulator's values behind an algorithm's text: blocks, embeddings and what is frozen, for all parties at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from crosshatch.local.passes import KeptPass
from crosshatch.local.problem import LossInputs, Problem

Solver = Callable[[list[Problem], list[Tensor], bool], list[Tensor]]


@dataclass(frozen=True)
class Blocks:
    """Weights of every silo: `base[j]` (p,) at its hub, and what its clients made of it in this round.

    `branches[j]` (innermost branches, p) is where branches below the hub stand within a round; empty: as the hub.
    `received[j]` is what clients got of it where a codec stood in between, (p,) or one for each innermost branch;
    empty: they got just that.
    """

    base: tuple[Tensor, ...]
    moved: Moved | None = None
    branches: tuple[Tensor, ...] = ()
    received: tuple[Tensor, ...] = ()

    def at_clients(self, silo: int) -> Tensor:
        """What a silo's clients start from, (p,), or (innermost branches, p) where these differ."""
        return (self.received or self.branches or self.base)[silo]


@dataclass
class Moved:
    """Local steps that were asked for but not yet computed: an average needs less than every client's own block."""

    problems: dict[int, Problem]
    solver: Solver
    done: dict[int, Tensor] = field(default_factory=dict)  # by silo its clients' blocks, where they were computed

    def and_then(self, problems: dict[int, Problem]) -> Moved:
        """The steps so far of other silos, and these."""
        done = {j: rows for j, rows in self.rows().items() if j not in problems}
        return Moved({**self.problems, **problems}, self.solver, done)

    def rows(self) -> dict[int, Tensor]:
        """Each silo's clients' blocks (clients at work, p)."""
        due = {j: problem for j, problem in self.problems.items() if j not in self.done}
        if due:
            ones = [torch.ones(problem.clients, dtype=torch.float64) for problem in due.values()]
            self.done |= dict(zip(due, self.solver(list(due.values()), ones, True), strict=True))
        return {j: self.done[j] for j in self.problems}

    def sums(self, weights: dict[int, Tensor]) -> dict[int, Tensor]:
        """Each silo's weighted sum (p,) over its clients at work."""
        sums = {j: weights[j].to(rows) @ rows for j, rows in self.done.items()}
        due = {j: problem for j, problem in self.problems.items() if j not in self.done}
        if due:
            solved = self.solver(list(due.values()), [weights[j] for j in due], False)
            sums |= dict(zip(due, solved, strict=True))
        return {j: sums[j] for j in self.problems}


@dataclass(frozen=True)
class Embeddings:
    """Outputs of every silo's block, part by part, in the batch's order.

    `passes` are forward passes kept for a first local step. `head` is the head of that moment at its holder's hub,
    `clients_head` at the holder's clients (both None for a sum). `seen` is what others got to see of a silo's values
    where a codec stood in between.
    """

    values: tuple[tuple[Tensor, ...], ...]  # [silo][part] (n, e)
    passes: tuple[KeptPass | None, ...]
    head: Tensor | None
    clients_head: Tensor | None
    seen: dict[int, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Frozen:
    """What each silo's clients know of the others, part by part, worked out for a silo when it is asked for.

    `known` serves any number of steps from anywhere. `at_start`, where it is given, is less work: the derivative at the
    embeddings of the exchange, for a single step from the blocks these came from.
    """

    known: Callable[[int], tuple[LossInputs, ...]]
    head: Tensor | None
    passes: tuple[KeptPass | None, ...]
    at_start: Callable[[int], tuple[LossInputs, ...]] | None = None
