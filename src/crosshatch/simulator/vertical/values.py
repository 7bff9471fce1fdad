"""The simulator's values behind an algorithm's text: blocks, embeddings and what is frozen, for all parties at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.local.problem import Known, Passes, Problem

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
    _rows: dict[int, Tensor] | None = None

    def rows(self) -> dict[int, Tensor]:
        """Each silo's clients' blocks (clients at work, p)."""
        if self._rows is None:
            problems = list(self.problems.values())
            ones = [torch.ones(problem.clients, dtype=torch.float64) for problem in problems]
            self._rows = dict(zip(self.problems, self.solver(problems, ones, True), strict=True))
        return self._rows

    def sums(self, weights: dict[int, Tensor]) -> dict[int, Tensor]:
        """Each silo's weighted sum (p,) over its clients at work."""
        if self._rows is not None:
            return {j: weights[j].to(rows) @ rows for j, rows in self._rows.items()}
        problems = list(self.problems.values())
        return dict(zip(self.problems, self.solver(problems, [weights[j] for j in self.problems], False), strict=True))


@dataclass(frozen=True)
class Embeddings:
    """Outputs of every silo's block, part by part, in the batch's order.

    `passes` are forward passes kept for a first local step. `head` is the head of that moment at its holder's hub,
    `clients_head` at the holder's clients (both None for a sum). `seen` is what others got to see of a silo's values
    where a codec stood in between.
    """

    values: tuple[tuple[Tensor, ...], ...]  # [silo][part] (n, e)
    passes: tuple[Passes | None, ...]
    head: Tensor | None
    clients_head: Tensor | None
    seen: dict[int, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Frozen:
    """What each silo's clients know of the others, part by part, worked out for a silo when it is asked for.

    `known` serves any number of steps from anywhere. `at_start`, where it is given, is less work: the derivative at the
    embeddings of the exchange, for a single step from the blocks these came from.
    """

    known: Callable[[int], tuple[Known, ...]]
    head: Tensor | None
    passes: tuple[Passes | None, ...]
    at_start: Callable[[int], tuple[Known, ...]] | None = None
