"""The hubs' averages over their clients' blocks, with the local steps before them, which may be computed here.

An average needs less than every client's own block: from a common start one pass serves all clients. So `descend` says
in the blocks it returns which steps were taken, and here, in one place, they are computed for whoever needs what comes
out of them: those of all silos and groups in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.problem import Problem
from crosshatch.protocol.what_is_known import check_sent
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks, Moved, rows_of
from crosshatch.simulator.vertical.branches import Branches

_ROUNDING = 1e-9  # what may be left of 1 where all clients are at work


Solver = Callable[..., list[Tensor]]
"""Who computes local steps: `local.solve.solve` with its strategy and threads."""


@dataclass(frozen=True)
class Weighed:
    """Blocks whose clients are to be averaged, by silo how much clients at work count, and all others together."""

    blocks: Blocks
    at_work: Mapping[int, Tensor]  # one number for each client
    idle: Mapping[int, float]  # with the block that a client would have started from
    passes: Passes


def client_blocks(blocks: Blocks, solver: Solver, passes: Passes) -> dict[int, Tensor]:
    """The blocks (clients at work, p) of silos whose clients have taken steps."""
    rows, due = _found(blocks, passes)
    if due:
        problems = list(due.values())
        ones = [torch.ones(problem.clients, dtype=torch.float64) for problem in problems]
        solved = solver(problems, ones, keep=True, passes=passes.find(problems))
        passes.blocks |= {id(problem): (problem, found) for problem, found in zip(problems, solved, strict=True)}
        rows |= dict(zip(due, solved, strict=True))
    return rows


def _found(blocks: Blocks, passes: Passes) -> tuple[dict[int, Tensor], dict[int, Problem]]:
    """By silo its clients' blocks where they are known, and else the steps from which they follow."""
    every = {j: passes.blocks.get(id(moved.to), (None, moved.to))[1] for j, moved in blocks.moved.items()}
    rows = {j: one for j, one in every.items() if isinstance(one, Tensor)}
    return rows, {j: one for j, one in every.items() if isinstance(one, Problem)}


def averaged(groups: Sequence[Weighed], solver: Solver) -> tuple[Blocks, ...]:
    """The blocks of some groups after their averages, the steps before these computed in one go."""
    sums: dict[tuple[int, int], Tensor] = {}  # by group and silo, over the clients at work
    due: dict[tuple[int, int], Problem] = {}
    kept: list[KeptPass | None] = []
    for g, one in enumerate(groups):
        known, steps = _found(one.blocks, one.passes)
        sums |= {(g, j): one.at_work[j].to(rows) @ rows for j, rows in known.items()}
        kept += one.passes.find(list(steps.values()))
        due |= {(g, j): problem for j, problem in steps.items()}
    if due:
        weights = [groups[g].at_work[j] for g, j in due]
        sums |= dict(zip(due, solver(list(due.values()), weights, keep=False, passes=kept), strict=True))
    after = []
    for g, one in enumerate(groups):
        base = list(one.blocks.base)
        for j, idle in one.idle.items():
            total = sums[g, j]
            base[j] = total.add_(base[j], alpha=idle) if idle > _ROUNDING else total
        after.append(Blocks(tuple(base)))
    return tuple(after)


@dataclass(frozen=True)
class AtClients:
    """What the clients at work hold of blocks that a round hands on."""

    solver: Solver
    passes: Passes
    branches: Branches | None
    one_party: frozenset[int]  # silos whose hub has its client's block at once
    unsent: frozenset[int]  # silos whose client has its hub's block without a message

    def weights(self, blocks: Blocks, batch: Batch, silos: Iterable[int]) -> list[Tensor]:
        """By silo what its clients at work hold, (p,) or each its own (clients, p); these silos' were sent it."""
        for j in silos:
            if j not in self.unsent and not (blocks.sent_to and blocks.sent_to[j] is batch.clients[j]):
                check_sent(j, batch.clients[j], blocks.sent_to[j] if blocks.sent_to else None)
        held = blocks.received or blocks.branches or blocks.base
        if self.branches is not None:
            held = self.branches.at_clients(held, batch)
        if not blocks.moved:
            return list(held)
        rows = client_blocks(blocks, self.solver, self.passes)
        return [
            rows_of(batch.clients[j], blocks.moved[j].clients, rows[j], start) if j in rows else start
            for j, start in enumerate(held)
        ]

    def at_hubs(self, blocks: Blocks) -> Blocks:
        """The same with the steps of silos that are one party: their hubs have the client's block at once."""
        moved = {j: one for j, one in blocks.moved.items() if j in self.one_party}
        if not moved:
            return blocks
        base = list(blocks.base)
        for j, rows in client_blocks(replace(blocks, moved=moved), self.solver, self.passes).items():
            base[j] = rows[0]
        return replace(blocks, base=tuple(base))

    def with_resting(self, before: Blocks, after: Blocks, batch: Batch, silos: Sequence[int]) -> Blocks:
        """Clients of these silos that took steps on an earlier batch alone have the blocks they had."""
        apart = [j for j in silos if not np.isin(before.moved[j].clients, batch.clients[j]).all()]
        if not apart:
            return after
        old, new = (client_blocks(blocks, self.solver, self.passes) for blocks in (before, after))
        moved = dict(after.moved)
        for j in apart:
            every = np.union1d(batch.clients[j], before.moved[j].clients)
            resting = rows_of(every, before.moved[j].clients, old[j], new[j][0])  # who has none is in the new ones
            moved[j] = Moved(every, rows_of(every, batch.clients[j], new[j], resting))
        return replace(after, moved=moved)
