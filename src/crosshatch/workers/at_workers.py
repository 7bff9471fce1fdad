"""The driver's side: forward passes and local steps cut into requests, piece by piece, and the answers put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.forward import KeptPass
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.local.solve import Strategy, choose, served_by_one_pass
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.embedding import Outputs
from crosshatch.workers.crew import Crew
from crosshatch.workers.division import Division, Ids, Run
from crosshatch.workers.requests import Embed, Steps

_NOBODY: Ids = np.zeros(0, dtype=np.int64)
_NO_INPUTS = LossInputs()


@dataclass(frozen=True)
class AtWorkers:
    """Asks a crew; here samples are known by the places of their rows."""

    crew: Crew
    division: Division
    like: tuple[Tensor, ...]  # by silo (0, ...): what samples are like
    keep_passes: bool  # the next local work is a single step
    samples: int  # for training

    def embed(
        self, group: int, seed: int, passes: Passes, weights: Mapping[int, Tensor], batch: Batch
    ) -> dict[int, Outputs]:
        """The outputs of some silos under weights (p,) or (clients at work, p), part by part in the batch's order."""
        requests, whose = [], []
        for j, own in weights.items():
            for s, held in enumerate(batch.held[j]):
                (places,), _ = passes.samples(batch, [j], s)
                ends = np.cumsum(held.counts)
                for run in self.division.runs(j, _first_rows([Part(places, _NO_INPUTS, held.counts)])):
                    rows = slice(int(ends[run.low] - held.counts[run.low]), int(ends[run.high - 1]))
                    if rows.stop > rows.start:
                        requests.append(Embed(
                            j, run.piece, places[rows] - int(self.division.edges[j][run.piece]),
                            own[run.low : run.high] if own.dim() == 2 else own, batch.clients[j][run.low : run.high],
                            held.counts[run.low : run.high], (seed, batch.round, s), self.keep_passes, group,
                        ))  # fmt: skip
                        whose.append((j, s))
                if s == 0 and own.dim() == 1:  # who solves is told to begin with it
                    passes.kept[j] = places, KeptPass(own, place=group)
        found: dict[tuple[int, int], list[Tensor]] = {}
        for key, rows_of_run in zip(whose, self.crew.ask(requests), strict=True):
            found.setdefault(key, []).append(rows_of_run)
        return {
            j: tuple(batch.as_drawn(j, s, torch.cat(found[j, s])) for s in range(len(batch.parts))) for j in weights
        }

    def solve(
        self, problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, strategy: Strategy,
        passes: Sequence[KeptPass | None] = (), chosen: dict[str, set[str]] | None = None,
    ) -> list[Tensor]:  # fmt: skip
        """What `local.solve.solve` gives, with sums over the clients of each piece, and then over the pieces."""
        passes, chosen = passes or [None] * len(problems), {} if chosen is None else chosen
        shared = set() if keep else set(served_by_one_pass(problems, passes))
        requests, whose = [], []
        for i, (problem, own, kept) in enumerate(zip(problems, weights, passes, strict=True)):
            name, first = problem.task.names[problem.silo], problem.parts[0]
            alike = replace(problem, parts=(replace(first, x=self.like[problem.silo]), *problem.parts[1:]))
            way = choose(alike, strategy)
            if i not in shared or name not in chosen:
                chosen.setdefault(name, set()).add(way)
            begins = None if kept is None else kept.place
            for run in self.division.runs(problem.silo, _first_rows(problem.parts)):
                some = self._of_run(problem, run)
                requests.append(Steps(run.piece, some, own[run.low : run.high], way, keep, self.keep_passes, begins))
                whose.append(i)
        results: list[list[Tensor]] = [[] for _ in problems]
        for i, answer in zip(whose, self.crew.ask(requests), strict=True):
            if keep or not results[i]:
                results[i].append(answer)
            else:
                results[i][0] = results[i][0] + answer
        return [torch.cat(pieces) if keep else pieces[0] for pieces in results]

    def _of_run(self, problem: Problem, run: Run) -> Problem:
        """The same for some of the clients, with rows numbered from the beginning of their piece."""
        edge, parts = int(self.division.edges[problem.silo][run.piece]), []
        for part in problem.parts:
            rows = slice(*part.offsets[[run.low, run.high]].tolist())
            parts.append(Part(part.x[rows] - edge, part.loss_inputs.rows(rows), part.counts[run.low : run.high]))
        clients = slice(run.low, run.high)
        return replace(
            problem, parts=tuple(parts), start=problem.start[clients] if problem.start.dim() == 2 else problem.start,
            numbers=None if problem.numbers is None else problem.numbers[clients],
            state=None if problem.state is None else problem.state[clients],
        )  # fmt: skip

    def embed_training(self, model: Sequence[Tensor], samples: int | None) -> list[Tensor]:
        """The embeddings of the (first) training samples in evaluation, by silo."""
        count = self.samples if samples is None else min(samples, self.samples)
        return self.embed_at(model, [places[:count] for places in self.division.places])

    def embed_at(self, model: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
        """The same of the samples at these places (n,) of each silo."""
        requests, whose = [], []
        for j, (weights, wanted) in enumerate(zip(model, xs, strict=True)):
            places, order = wanted.sort()
            cuts = torch.searchsorted(places, torch.as_tensor(self.division.edges[j])).tolist()
            for piece, (low, high) in enumerate(pairwise(cuts)):
                if high > low:
                    rows = places[low:high] - int(self.division.edges[j][piece])
                    requests.append(Embed(j, piece, rows, weights, _NOBODY, _NOBODY, None))
                    whose.append((j, order[low:high]))
        outputs: dict[int, Tensor] = {}
        for (j, where), rows in zip(whose, self.crew.ask(requests), strict=True):
            outputs.setdefault(j, rows.new_empty(len(xs[j]), rows.shape[1])).index_copy_(0, where, rows)
        return [outputs[j] for j in range(len(model))]


def _first_rows(parts: Sequence[Part]) -> Ids:
    """For each client at work the place of its first row in the first part that it has rows of.

    Who has none, and stays where it is, goes with a neighbour.
    """
    found = np.full(len(parts[0].counts), -1, dtype=np.int64)
    for part in parts:
        mine = (found < 0) & (part.counts > 0)
        found[mine] = part.x.numpy()[part.offsets[:-1][mine]]
    known = np.flatnonzero(found >= 0)
    if len(known) == 0:
        return np.zeros_like(found)
    before = np.searchsorted(known, np.arange(len(found)), side="right") - 1
    return found[known[np.maximum(before, 0)]]
