"""Clients of one or several silos behind one another, sorted into buckets of similar size and padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.problem import Problem

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
    scale: Tensor
    alive: Tensor | None  # (K, 1, 1) False: no rows in this part; None: all have some
    outputs: list[Tensor]  # of every layer of a chain in the first step, if they are known

    def by_time(self, steps: int) -> Rows:
        """The same with x as sequences, (t, K, m, d)."""
        sequences = self.x.view(*self.x.shape[:2], steps, -1)
        return replace(self, x=sequences.permute(2, 0, 1, 3).contiguous())


@dataclass(frozen=True)
class Mine:
    """The jobs of a bucket that belong to one problem: positions `where` in the bucket, `clients` in the problem."""

    problem: int
    where: slice
    clients: Tensor


class Stack:
    """The samples and starts of problems alike in shape; a job is one client of one of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems
        self.first_job = np.cumsum([0, *(p.clients for p in problems)])
        self.problem_of: Jobs = np.repeat(np.arange(len(problems)), np.diff(self.first_job))
        parts = [[part.ordered() for part in p.parts] for p in problems]
        every = range(len(parts[0]))
        self.counts = [np.concatenate([mine[s].counts for mine in parts]) for s in every]
        self.most_rows: Jobs = np.max(self.counts, axis=0)
        first = self._first_pass()
        self.x = first[:1] or [_cat([mine[s].x.flatten(1) for mine in parts]) for s in every]
        self.outputs = first[1:]
        self.y = [_cat_known([mine[s].known.y for mine in parts]) for s in every]
        self.rest = [_cat_known([mine[s].known.rest for mine in parts]) for s in every]
        self.derivative = [_cat_known([mine[s].known.derivative for mine in parts]) for s in every]

    def _first_pass(self) -> list[Tensor]:
        """Samples (n, d) and every layer's outputs (n, o) in the first step, where the exchange left them.

        It was the same pass; nothing where it was not.
        """
        found = [p.passes for p in self.problems if p.passes is not None and p.passes_in_order]
        piles = [passes.pile for passes in found if passes.pile is not None]
        if len(piles) < len(self.problems):
            return []
        if len(piles[0].x) == len(piles) and all(pile is piles[0] for pile in piles):
            piles = piles[:1]
        else:
            piles = [pile.one(passes.place) for pile, passes in zip(piles, found, strict=True)]
        tensors = zip(*((pile.x, *pile.outputs) for pile in piles), strict=True)
        return [_cat([t.flatten(0, 1) for t in one]) for one in tensors]

    def by_problem(self, jobs: Jobs) -> list[Mine]:
        """Sorted jobs, problem by problem."""
        edges = np.searchsorted(jobs, self.first_job)
        return [
            Mine(i, slice(int(low), int(high)), torch.as_tensor(jobs[low:high] - self.first_job[i]))
            for i, (low, high) in enumerate(pairwise(edges))
            if high > low
        ]

    def start(self, jobs: Jobs, where: slice = slice(None)) -> Tensor:
        """The blocks these jobs start from, (K, p), or their numbers `where`."""
        starts = [problem.start for problem in self.problems]
        if all(start.dim() == 1 for start in starts):
            index = torch.as_tensor(self.problem_of[jobs], device=starts[0].device)
            return torch.stack(starts)[:, where].index_select(0, index)
        whole = [start[..., where].expand(p.clients, -1) for start, p in zip(starts, self.problems, strict=True)]
        return torch.cat(whole).index_select(0, torch.as_tensor(jobs, device=starts[0].device))

    def received_head(self, jobs: Jobs) -> Tensor | None:
        """The head as received, (K, h), for silos which do not hold it."""
        heads = [(self.problems[m.problem].head, len(m.clients)) for m in self.by_problem(jobs)]
        return _cat_known([None if head is None else head.expand(count, -1) for head, count in heads])

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
        known = (pick(self.y[part]), pick(self.rest[part]), pick(self.derivative[part]))
        outputs = [out for out in map(pick, self.outputs) if out is not None]
        return Rows(x, *known, scale, alive, outputs)


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
