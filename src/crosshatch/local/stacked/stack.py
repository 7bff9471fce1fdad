"""Clients of one or several silos behind one another, sorted into buckets of similar size and padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.problem import Problem, first_chain_passes

Jobs = npt.NDArray[np.int64]
_BUCKETS = 4
_WORTH = 0.1  # a further bucket must save this share of all rows


@dataclass(frozen=True)
class Rows:
    """Padded samples of K jobs in one part; `scale` (K, m, 1) is one over the client's count, 0 where padded."""

    x: Tensor  # (K, m, d)
    y: Tensor | None
    rest: Tensor | None
    derivative: Tensor | None
    start: Tensor | None
    scale: Tensor
    alive: Tensor | None  # (K, 1, 1) False: no rows in this part; None: all have some
    outputs: list[Tensor]  # of every layer of a chain in the first step, if they are known

    def by_time(self, steps: int) -> Rows:
        """The same with x as sequences, (t, K, m, d)."""
        sequences = self.x.view(*self.x.shape[:2], steps, -1)
        return replace(self, x=sequences.permute(2, 0, 1, 3).contiguous())


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
        kept = first_chain_passes(problems, passes)
        layers = zip(*((one.x, *one.outputs) for one in kept), strict=True)
        first = [_cat([tensor.flatten(0, 1) for tensor in layer]) for layer in layers]
        known = len(first[:1])  # the first part's samples lie in the kept pass
        self.x = first[:1] + [_cat([mine[s].x.flatten(1) for mine in parts]) for s in every[known:]]
        self.outputs = first[1:]  # of every layer in the first step (n, o), where the exchange's pass was kept
        self.y = [_cat_known([mine[s].loss_inputs.y for mine in parts]) for s in every]
        self.rest = [_cat_known([mine[s].loss_inputs.rest for mine in parts]) for s in every]
        self.derivative = [_cat_known([mine[s].loss_inputs.derivative for mine in parts]) for s in every]
        self.start = [_cat_known([mine[s].loss_inputs.start for mine in parts]) for s in every]

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

    def rows(self, jobs: Jobs, part: int) -> Rows:
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

        def pick(t: Tensor | None) -> Tensor | None:
            if t is None:
                return None
            t = t if len(t) else t.new_zeros(1, *t.shape[1:])  # a part that nobody has samples of
            return (t if as_they_are else t.index_select(0, index)).view(len(jobs), longest, *t.shape[1:])

        x = pick(self.x[part])
        assert x is not None
        scale = torch.as_tensor(real / np.maximum(mine, 1)[:, None]).to(x).unsqueeze(-1)
        alive = None if mine.all() else torch.as_tensor(mine > 0).view(-1, 1, 1)
        y, rest, derivative, start = (pick(of[part]) for of in (self.y, self.rest, self.derivative, self.start))
        outputs = [out for out in map(pick, self.outputs if part == 0 else ()) if out is not None]
        return Rows(x, y, rest, derivative, start, scale, alive, outputs)


def numbers_at_start(members: Sequence[ProblemJobs], where: slice) -> Tensor:
    """The numbers `where` in the blocks the jobs start from, (K, numbers)."""
    return torch.cat([mine.start[..., where].expand(len(mine.clients), -1) for mine in members])


def received_heads(members: Sequence[ProblemJobs]) -> Tensor:
    """The head as received, (K, h), for silos which do not hold it."""
    return torch.cat([mine.head.expand(len(mine.clients), -1) for mine in members if mine.head is not None])


def _cat(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def _cat_known(tensors: list[Tensor | None]) -> Tensor | None:
    present = [t for t in tensors if t is not None]
    return _cat(present) if present else None


def buckets(rows: Jobs) -> list[Jobs]:
    """Jobs with rows in up to four groups of similar counts, each in the jobs' order.

    The group whose best cut saves the most padding is cut first, as long as that is worth the further products.
    """
    ranked = np.argsort(rows, kind="stable")
    ranked = ranked[rows[ranked] > 0]
    counts = rows[ranked]
    edges = [0, len(ranked)]
    while len(edges) <= _BUCKETS:
        cuts = [_best_cut(counts[low:high]) for low, high in pairwise(edges)]
        saved, widest = max((saved, -i) for i, (saved, _) in enumerate(cuts)) if cuts else (0, 0)
        if saved <= _WORTH * counts.sum():
            break
        edges.insert(1 - widest, edges[-widest] + cuts[-widest][1])
    return [np.sort(ranked[low:high]) for low, high in pairwise(edges) if high > low]


def _best_cut(counts: Jobs) -> tuple[int, int]:
    """For sorted counts: rows of padding saved by cutting once, and where."""
    if len(counts) < 2:
        return 0, 0
    below = np.arange(1, len(counts))
    saved = below * (counts[-1] - counts[:-1])
    best = int(saved.argmax())
    return int(saved[best]), int(below[best])
