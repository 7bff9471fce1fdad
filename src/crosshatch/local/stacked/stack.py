"""Clients of one or several silos behind one another, sorted into buckets of similar size and padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.layers import ChainPass
from crosshatch.local.problem import LossInputs, Problem

Jobs = npt.NDArray[np.int64]
_BUCKETS = 4
_WORTH = 0.1  # a further bucket must save this share of all rows
_WORTHWHILE = 2**16  # and so many multiplications per step at least: its calls take as long


@dataclass(frozen=True)
class PaddedRows:
    """Padded samples of K jobs in one part; `scale` (K, m, 1) is one over the client's count, 0 where padded."""

    x: Tensor  # (K, m, d)
    inputs: LossInputs
    scale: Tensor
    alive: Tensor | None  # (K, 1, 1) False: no rows in this part; None: all have some
    outputs: list[Tensor]  # of every layer of a chain in the first step, if they are known


@dataclass(frozen=True)
class ProblemJobs:
    """The jobs of a bucket that belong to one problem."""

    number: int  # of the problem
    where: slice  # their positions in the bucket
    clients: Tensor  # their clients in the problem
    start: Tensor  # (p,) the same for all of them, or (jobs, p)
    head: Tensor | None  # the head as received; None at its holder, and for a sum


class Stack:
    """The samples and starts of problems alike in shape; a job is one client of one of them."""

    def __init__(self, problems: Sequence[Problem], passes: Sequence[KeptPass | None]) -> None:
        self.problems = problems
        self.first_job = np.cumsum([0, *(len(problem.parts[0].counts) for problem in problems)])
        parts = [problem.parts for problem in problems]
        every = range(len(parts[0]))
        self.counts = [np.concatenate([mine[s].counts for mine in parts]) for s in every]
        self.most_rows: Jobs = np.max(self.counts, axis=0)
        self.groups = buckets(self.most_rows, _WORTHWHILE / max(1, problems[0].start.shape[-1]))
        kept = first_chain_passes(problems, passes)
        layers = zip(*((one.x, *one.outputs) for one in kept), strict=True)
        first = [_behind([one.flatten(0, 1) for one in layer]) for layer in layers]
        self.outputs = first[1:]  # of every layer in the first step (n, o), where the exchange's pass was kept
        # By part the samples, and what their losses need (None: nothing of the kind).
        self.tensors: list[list[Tensor | None]] = []
        for s in every:
            samples = first[:1] if first and s == 0 else [mine[s].x.flatten(1) for mine in parts]
            inputs = [mine[s].loss_inputs for mine in parts]
            needed = zip(*((one.y, one.rest, one.derivative, one.start) for one in inputs), strict=True)
            self.tensors.append([_behind(of) for of in (samples, *needed)])

    def by_problem(self, jobs: Jobs) -> list[ProblemJobs]:
        """Sorted jobs, problem by problem."""
        edges = np.searchsorted(jobs, self.first_job)
        found = []
        for i, (low, high) in enumerate(pairwise(edges.tolist())):
            if high > low:
                start, head = self.problems[i].start, self.problems[i].head
                clients = torch.as_tensor(jobs[low:high] - self.first_job[i], device=start.device)
                own = start if start.dim() == 1 else start.index_select(0, clients)
                found.append(ProblemJobs(i, slice(low, high), clients, own, head))
        return found

    def rows(self, jobs: Jobs, part: int) -> PaddedRows:
        """The padded samples of these jobs in a part."""
        counts = self.counts[part]
        mine = counts[jobs]
        first = (np.cumsum(counts) - counts)[jobs]
        longest = max(1, int(mine.max()))
        position = np.arange(longest)
        real = position < mine[:, None]
        index = torch.as_tensor(np.where(real, first[:, None] + position, 0).reshape(-1))
        # Where nothing is padded and all jobs are here, the rows already lie as they should.
        as_they_are = len(jobs) == len(counts) and bool(real.all())

        picked: list[Any] = []
        for tensor in (*self.tensors[part], *(self.outputs if part == 0 else ())):
            if tensor is not None:
                if not len(tensor):  # a part that nobody has samples of
                    tensor = tensor.new_zeros(1, *tensor.shape[1:])
                tensor = tensor if as_they_are else tensor.index_select(0, index)
                tensor = tensor.view(len(jobs), longest, *tensor.shape[1:])
            picked.append(tensor)
        x, y, rest, derivative, start, *outputs = picked
        scale = torch.as_tensor(real / np.maximum(mine, 1)[:, None]).to(x).unsqueeze(-1)
        alive = None if mine.all() else torch.as_tensor(mine > 0).view(-1, 1, 1)
        return PaddedRows(x, LossInputs(y, rest, derivative, start), scale, alive, outputs)


def first_chain_passes(problems: Sequence[Problem], passes: Sequence[KeptPass | None]) -> list[ChainPass]:
    """The kept passes of all problems' first steps, one behind another; none if even one of them is missing.

    Only chains have them here.
    """
    found = [(kept.chain_pass, kept.place) for kept in passes if kept is not None and kept.chain_pass is not None]
    if len(found) < len(passes):
        return []
    first = found[0][0]
    if len(first.x) == len(problems) and all(one is first for one, _ in found):
        return [first]
    return [one if len(one.x) == 1 else one.one(place) for one, place in found]


def _behind(tensors: Sequence[Any]) -> Any:
    """One behind another; None where there are none."""
    return tensors[0] if tensors[0] is None or len(tensors) == 1 else torch.cat(tuple(tensors))


def buckets(rows: Jobs, least: float = 0) -> list[Jobs]:
    """Jobs with rows in up to four groups of similar counts, each in the jobs' order.

    The group whose best cut saves the most padding is cut first, as long as that is worth the further products: a cut
    saves a share of all rows, and at least so many.
    """
    ranked = np.argsort(rows, kind="stable")
    ranked = ranked[rows[ranked] > 0]
    counts = rows[ranked]
    edges = [0, len(ranked)]
    least = max(least, _WORTH * counts.sum())
    while len(edges) <= _BUCKETS:
        best, at = least, 0
        for low, high in pairwise(edges):
            below = np.arange(1, high - low)  # a cut saves what those below it would be padded by
            saved = below * (counts[high - 1] - counts[low : high - 1]) if high > low else below
            if saved.max(initial=0) > best:
                best, at = int(saved.max()), low + int(below[saved.argmax()])
        if not at:
            break
        edges = sorted([*edges, at])
    return [np.sort(ranked[low:high]) for low, high in pairwise(edges) if high > low]
