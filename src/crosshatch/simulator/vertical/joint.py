"""Groups that hold the same blocks: one pass over the samples of all serves a step that ends in the groups' average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.forward import forward
from crosshatch.local.passes import CommonPass, KeptPass
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.simulator.vertical.averaging import add_idle
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.simulator.vertical.federation import SimulatedFederation


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
        seed = (one.arrivals.seed, batches[0].round)
        outputs, whole = forward(one.task, j, weights, x, keep=True, threads=one.threads, seed=seed)
        assert whole is not None
        common = CommonPass(whole, x)
        for g, (batch, rows) in enumerate(zip(batches, places, strict=True)):
            values[g].append(tuple(batch.as_drawn([j], 0, [outputs[rows]])))
            passes[g].append(common.of(rows))
    head = one.task.head_in(blocks.base)
    return tuple(Embeddings(tuple(own), tuple(kept), head, head, {}) for own, kept in zip(values, passes, strict=True))


def is_joint(blocks: Sequence[Blocks]) -> bool:
    """Whether the averages asked for in all groups go back from the same passes, nothing of them computed yet."""
    steps = [one.steps for one in blocks if one.steps is not None and one.steps.average is not None]
    if len(steps) < len(blocks) or any(one.done for one in steps):
        return False
    firsts = [problem.kept_pass and problem.kept_pass.common for problem in steps[0].problems.values()]
    return (
        None not in firsts
        and all(one.base is blocks[0].base for one in blocks)
        and all(
            problem.starts_from_kept_pass and problem.kept_pass is not None and problem.kept_pass.common is first
            for one in steps
            for problem, first in zip(one.problems.values(), firsts, strict=True)
        )
    )


def average_jointly(blocks: Sequence[Blocks], shares: Sequence[Sequence[float]]) -> Blocks:
    """The average of joint groups' averages, by silo with each group's share: their clients as those of one group."""
    steps = [one.steps for one in blocks if one.steps is not None]
    averages = [one.average for one in steps if one.average is not None]
    silos = list(steps[0].problems)
    problems = [_merge([one.problems[j] for one in steps]) for j in silos]
    clients = [torch.cat([one.at_work[j] * w for one, w in zip(averages, shares[j], strict=True)]) for j in silos]
    base = list(blocks[0].base)
    for j, mine, total in zip(silos, clients, steps[0].solver(problems, clients, keep=False), strict=True):
        base[j] = add_idle(total, base[j], 1.0 - float(mine.sum()))
    return Blocks(tuple(base))


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
    part = Part(
        common.x,
        LossInputs.joined([one.loss_inputs for one in parts]),
        np.concatenate([p.counts for p in parts]),
        owners,
    )
    return replace(first, parts=(part,), kept_pass=common.kept, numbers=None)
