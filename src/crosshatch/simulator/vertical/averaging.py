"""What comes of local steps: the clients' own blocks, or their hubs' averages over them.

Blocks say which steps were taken, and in this one place they are computed, for whoever needs what comes out of them.
For an average that is less than every client's own block, since from a common start one pass serves all clients; so an
average computes the steps before it, those of all silos and groups in one go. Averages of branches are in
`branches.py`, of groups in `groups.py`; a party's own is in `parties/roles/block_averaging.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.problem import Problem
from crosshatch.protocol.what_is_known import check_sent
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks, rows_of
from crosshatch.simulator.vertical.branches import Branches

_ROUNDING = 1e-9  # what may be left of 1 where all clients are at work


Solver = Callable[..., list[Tensor]]
"""Who computes local steps: `local.solve.solve` with its strategy and threads."""


@dataclass(frozen=True)
class Weighed:
    """Blocks to be averaged, by silo: those of the clients at work (clients, p), or the steps that lead there."""

    base: Sequence[Tensor]
    moved: Mapping[int, Tensor | Problem]
    at_work: Mapping[int, Tensor]  # how much each client at work counts
    idle: Mapping[int, float]  # and all others together, with the block that they would have started from
    passes: Passes


def outcomes(steps: Sequence[Problem], solver: Solver, passes: Passes) -> list[Tensor]:
    """The blocks (clients at work, p) that steps lead to; the table keeps the optimiser's states beside them."""
    due = [one for one in steps if id(one) not in passes.blocks]
    if due:
        ones = [torch.ones(one.clients, dtype=torch.float64) for one in due]
        solved = solver(due, ones, keep=True, passes=passes.find(due))
        for one, rows in zip(due, solved, strict=True):
            numbers = one.start.shape[-1]
            passes.blocks[id(one)] = one, rows[:, :numbers].contiguous(), rows[:, numbers:]
    return [passes.blocks[id(one)][1] for one in steps]


def averaged(groups: Sequence[Weighed], solver: Solver) -> list[Blocks]:
    """The blocks of some groups after their averages, the steps before these computed in one go."""
    sums: dict[tuple[int, int], Tensor] = {}  # by group and silo, over the clients at work
    due: dict[tuple[int, int], Problem] = {}
    kept: list[KeptPass | None] = []
    for g, one in enumerate(groups):
        steps = {j: moved for j, moved in one.moved.items() if isinstance(moved, Problem)}
        known = [j for j, taken in steps.items() if taken.state is not None or id(taken) in one.passes.blocks]
        rows = dict(zip(known, outcomes([steps.pop(j) for j in known], solver, one.passes), strict=True))
        rows |= {j: moved for j, moved in one.moved.items() if isinstance(moved, Tensor)}
        sums |= {(g, j): one.at_work[j].to(own) @ own for j, own in rows.items()}
        due |= {(g, j): taken for j, taken in steps.items()}
        kept += one.passes.find(list(steps.values()))
    if due:
        weights = [groups[g].at_work[j] for g, j in due]
        sums |= dict(zip(due, solver(list(due.values()), weights, keep=False, passes=kept), strict=True))
    after = []
    for g, one in enumerate(groups):
        base = list(one.base)
        for j, idle in one.idle.items():
            total = sums[g, j]
            base[j] = total.add_(base[j], alpha=idle) if idle > _ROUNDING else total
        after.append(Blocks(tuple(base)))
    return after


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
        known, steps = list(held), [(j, one) for j, taken in blocks.moved.items() for one in taken]
        rows = outcomes([one for _, one in steps], self.solver, self.passes)
        for (j, one), moved in zip(steps, rows, strict=True):
            known[j] = rows_of(batch.clients[j], one.at_work, moved, known[j])
        return known

    def at_hubs(self, blocks: Blocks) -> Blocks:
        """The same with the steps of silos that are one party: their hubs have the client's block at once."""
        last = {j: taken[-1] for j, taken in blocks.moved.items() if j in self.one_party}
        base = list(blocks.base)
        for j, rows in zip(last, outcomes(list(last.values()), self.solver, self.passes), strict=True):
            base[j] = rows[0]
        return replace(blocks, base=tuple(base))
