"""What one worker has and does: the rows of its pieces, forward passes and local steps on them, piece by piece."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from crosshatch.local.forward import BATCH_ROWS, KeptPass, aligned, forward, forward_rows
from crosshatch.local.modules import evaluating
from crosshatch.local.pool import run_each
from crosshatch.local.problem import Problem
from crosshatch.local.read_chain import draws_random_numbers
from crosshatch.local.solve import solve
from crosshatch.task.task import Task
from crosshatch.workers.requests import Embed, Request, Steps, settled

Rows = Mapping[tuple[int, int], Tensor]
"""By silo and piece, (n, ...) client by client."""


class Shard:
    """Answers requests about its pieces; nothing that it keeps changes a number, so that it may begin anew any time."""

    def __init__(self, task: Task, rows: Rows, threads: int) -> None:
        """`threads` take whole pieces, each with one thread inside torch."""
        rows = {key: aligned(x) for key, x in rows.items()}
        examples = {j: x[:2] for (j, _), x in rows.items() if len(x)}
        random = any(draws_random_numbers(task.blocks[j], x) for j, x in examples.items())
        self._task, self._rows = task, rows
        self._threads = 1 if random else threads  # torch has one generator for all threads
        self._round: int | None = None
        self._gathered: dict[tuple[int, int, bytes], Tensor] = {}  # of the round
        self._passes: dict[tuple[int, int, int], KeptPass | None] = {}  # by group, silo and piece, the newest

    def answer(self, requests: Sequence[Request]) -> tuple[list[Tensor], float]:
        """What was asked for, in the order of the requests, and the seconds it took."""
        began, requests = time.perf_counter(), [settled(one) for one in requests]
        if requests and requests[0].round is not None and requests[0].round != self._round:
            self._round = requests[0].round
            self._gathered.clear()
            self._passes.clear()
        together: dict[object, list[int]] = {}  # steps of a piece are computed in one go
        for i, one in enumerate(requests):
            together.setdefault(("steps", one.piece) if isinstance(one, Steps) else i, []).append(i)
        work = [partial(self._answer, [requests[i] for i in members]) for members in together.values()]
        found: list[Tensor | None] = [None] * len(requests)
        with ExitStack() as modes:
            if any(one.round is None for one in requests):  # threads that come and go would switch modes under others
                for block in self._task.blocks:
                    modes.enter_context(evaluating(block))
            for members, results in zip(together.values(), run_each(work, threads=self._threads), strict=True):
                for i, result in zip(members, results, strict=True):
                    found[i] = result
        return [aligned(one) for one in found if one is not None], time.perf_counter() - began

    def _answer(self, requests: Sequence[Request]) -> list[Tensor]:
        if isinstance(requests[0], Embed):
            return [self._embed(requests[0])]
        return self._solve([one for one in requests if isinstance(one, Steps)])

    def _samples(self, silo: int, piece: int, rows: Tensor) -> Tensor:
        mine = self._rows[silo, piece]
        key = silo, piece, rows.numpy().tobytes()
        if key not in self._gathered:
            whole = len(rows) == len(mine) and torch.equal(rows, torch.arange(len(mine), dtype=rows.dtype))
            self._gathered[key] = mine if whole else mine.index_select(0, rows)
        return self._gathered[key]

    def _embed(self, asked: Embed) -> Tensor:
        if asked.seed is None:
            mine = self._rows[asked.silo, asked.piece]
            pieces = [mine.index_select(0, some) for some in torch.split(asked.rows, BATCH_ROWS)]
            return torch.cat([
                forward(self._task, asked.silo, asked.weights, x, keep=False, threads=1)[0] for x in pieces
            ])  # fmt: skip
        x = self._samples(asked.silo, asked.piece, asked.rows)
        if asked.weights.dim() == 2:
            return forward_rows(
                self._task, asked.silo, asked.weights, x, asked.counts, numbers=asked.numbers, seed=asked.seed
            )
        holders = asked.numbers, asked.counts
        outputs, kept = forward(
            self._task, asked.silo, asked.weights, x, keep=asked.keep, threads=1, seed=asked.seed, holders=holders
        )
        if asked.seed[2] == 0:  # the first part
            self._passes[asked.group, asked.silo, asked.piece] = kept
        return outputs

    def _solve(self, asked: Sequence[Steps]) -> list[Tensor]:
        """Those of one piece: problems that are computed in the same way together."""
        found: dict[int, Tensor] = {}
        for way in dict.fromkeys(one.way for one in asked):
            members = [i for i, one in enumerate(asked) if one.way == way]
            problems = [self._with_samples(asked[i]) for i in members]
            assert way != "given", "refused: derivatives that came encrypted do not go to workers"
            solved = solve(
                problems, [asked[i].weights for i in members], keep=asked[0].keep, strategy=way, threads=1,
                passes=[self._kept(asked[i], problem) for i, problem in zip(members, problems, strict=True)],
            )  # fmt: skip
            found.update(zip(members, solved, strict=True))
        return [found[i] for i in range(len(asked))]

    def _with_samples(self, asked: Steps) -> Problem:
        problem = asked.problem
        parts = (replace(part, x=self._samples(problem.silo, asked.piece, part.x)) for part in problem.parts)
        return replace(problem, task=self._task, parts=tuple(parts))

    def _kept(self, asked: Steps, problem: Problem) -> KeptPass | None:
        """The pass that the first step begins with; after a new start the worker makes it once more."""
        if asked.begins is None:
            return None
        key = asked.begins, problem.silo, asked.piece
        if key not in self._passes:
            assert problem.numbers is not None
            holders, seed = (problem.numbers, problem.parts[0].counts), (*problem.seed, 0)
            _, self._passes[key] = forward(
                self._task, problem.silo, problem.start, problem.parts[0].x,
                keep=asked.keep_passes, threads=1, seed=seed, holders=holders,
            )  # fmt: skip
        return self._passes[key]
