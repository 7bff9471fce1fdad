"""Groups that hold the same blocks: one pass over the samples of all serves a step that ends in the groups' average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights
from crosshatch.local.forward import forward
from crosshatch.local.passes import CommonPass, KeptPass
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.simulator.vertical.averaging import with_idle
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.values import Blocks, Embeddings, Moved


def embed_jointly(
    groups: Sequence[SimulatedFederation], blocks: Blocks, batches: Sequence[Batch]
) -> tuple[Embeddings, ...]:
    """Outputs in every group under the blocks all of them hold; each silo's samples of all groups in one pass."""
    one, edges = groups[0], np.cumsum([0, *(batch.rows for batch in batches)]).tolist()
    places = [slice(low, high) for low, high in pairwise(edges)]
    values: list[list[tuple[Tensor, ...]]] = [[] for _ in groups]
    passes: list[list[KeptPass | None]] = [[] for _ in groups]
    for j, weights in enumerate(blocks.base):
        x = one.data.silos[j].train.new_empty((edges[-1], *one.data.silos[j].train.shape[1:]))
        for group, batch, rows in zip(groups, batches, places, strict=True):
            batch.gather_into(x[rows], j, 0, group.data.silos[j].train)
        seed = (one.coding.seed, batches[0].round)
        outputs, whole = forward(one.task, j, weights, x, keep=True, threads=one.threads, seed=seed)
        assert whole is not None
        common = CommonPass(whole, x)
        for g, (batch, rows) in enumerate(zip(batches, places, strict=True)):
            values[g].append((batch.shares[j][0].unsort(outputs[rows]),))
            passes[g].append(common.of(rows))
    return tuple(
        Embeddings(tuple(own), tuple(kept), group.embedder.head(blocks), group.embedder.head(blocks), {})
        for group, own, kept in zip(groups, values, passes, strict=True)
    )


@dataclass(frozen=True)
class Averages:
    """Every group's average over its clients at work, not computed yet: the average of all groups may need less."""

    groups: Sequence[SimulatedFederation]
    blocks: Sequence[Blocks]  # as the clients left them
    batches: Sequence[Batch]
    weights: ClientWeights

    @property
    def joint(self) -> bool:
        """Whether all groups go back from the same passes."""
        firsts = [problem.kept_pass and problem.kept_pass.common for problem in self._moved[0].problems.values()]
        return (
            None not in firsts
            and not any(moved.done for moved in self._moved)
            and all(one.base is self.blocks[0].base for one in self.blocks)
            and all(
                problem.starts_from_kept_pass and problem.kept_pass is not None and problem.kept_pass.common is first
                for moved in self._moved
                for problem, first in zip(moved.problems.values(), firsts, strict=True)
            )
        )

    def each(self) -> tuple[Blocks, ...]:
        """The groups' averages, the local steps of all of them computed in one go."""
        moved, shares = self._moved, self._shares
        if any(one.done for one in moved):
            own = [one.sums(share) for one, share in zip(moved, shares, strict=True)]
            return self._finish(own)
        keys = [(g, j) for g, one in enumerate(moved) for j in one.problems]
        problems = [moved[g].problems[j] for g, j in keys]
        sums: list[dict[int, Tensor]] = [{} for _ in self.groups]
        solved = moved[0].solver(problems, [shares[g][j] for g, j in keys], False)
        for (g, j), total in zip(keys, solved, strict=True):
            sums[g][j] = total
        return self._finish(sums)

    def _finish(self, sums: Sequence[dict[int, Tensor]]) -> tuple[Blocks, ...]:
        """The groups' blocks from the weighted sums over their clients at work."""
        return tuple(
            group.finish_average(before, batch, share, total)
            for group, before, batch, share, total in zip(
                self.groups, self.blocks, self.batches, self._shares, sums, strict=True
            )
        )

    def mean(self, weights: Sequence[float]) -> Blocks:
        """The weighted average of joint groups' averages: their clients as those of one group."""
        silos = list(self._moved[0].problems)
        problems = [_merge([moved.problems[j] for moved in self._moved]) for j in silos]
        shares = [torch.cat([mine[j] * w for mine, w in zip(self._shares, weights, strict=True)]) for j in silos]
        base = list(self.blocks[0].base)
        for j, share, total in zip(silos, shares, self._moved[0].solver(problems, shares, False), strict=True):
            base[j] = with_idle(total, base[j], 1.0 - float(share.sum()))
        return Blocks(tuple(base))

    @property
    def _moved(self) -> list[Moved]:
        return [one.moved for one in self.blocks if one.moved is not None]

    @cached_property
    def _shares(self) -> list[dict[int, Tensor]]:
        pairs = zip(self.groups, self.batches, strict=True)
        return [group.client_weights(batch, self.weights) for group, batch in pairs]


def _merge(problems: Sequence[Problem]) -> Problem:
    """One silo's clients in several groups as those of one, by the pass their samples were together in."""
    first, parts = problems[0], [problem.parts[0] for problem in problems]
    assert first.kept_pass is not None
    common = first.kept_pass.common
    assert common is not None
    lengths = [len(part.counts) for part in parts]
    begins = np.cumsum([0, *lengths[:-1]]).tolist()
    owners = None
    if any(part.owners is not None for part in parts):
        owners = np.concatenate([part.whose() + begin for part, begin in zip(parts, begins, strict=True)])
    part = Part(common.x, _cat([one.loss_inputs for one in parts]), np.concatenate([p.counts for p in parts]), owners)
    return replace(first, parts=(part,), kept_pass=common.kept, numbers=None)


def _cat(inputs: Sequence[LossInputs]) -> LossInputs:
    columns = zip(*((one.y, one.rest, one.derivative) for one in inputs), strict=True)
    return LossInputs(*(None if column[0] is None else torch.cat(column) for column in columns))
