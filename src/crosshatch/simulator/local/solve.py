"""Which strategy computes the local steps: a rule over the modules' kinds and sizes, never a measurement.

A measurement at start-up would make two equal runs differ in their last bits. The choice is recorded with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from crosshatch.errors import ConfigError
from crosshatch.simulator.local.loop import solve_loop
from crosshatch.simulator.local.problem import Problem
from crosshatch.simulator.local.shared import can_share, solve_shared
from crosshatch.simulator.local.stacked import chains, solve_stacked

Strategy = Literal["auto", "loop", "stacked", "gram"]


def choose(problem: Problem) -> Literal["loop", "stacked", "gram"]:
    """The strategy for a silo: stacking for chains, in Gram form where a client has few rows; the loop otherwise."""
    shapes = chains(problem)
    if shapes is None or any(isinstance(m, nn.Dropout) for m in problem.task.blocks[problem.silo].modules()):
        return "loop"
    return "gram" if _gram_pays(problem, shapes[0][0].inputs) else "stacked"


def _gram_pays(problem: Problem, inputs: int) -> bool:
    """Building X X^T costs about its rows in passes over X, so a few steps and short shares are needed."""
    if len(problem.parts) > 1 or problem.task.regulariser.l1 or problem.steps < 3:
        return False
    return int(problem.parts[0].counts.max()) < 2 * inputs


def solve(
    problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, strategy: Strategy, threads: int
) -> list[Tensor]:
    """Each silo's weighted sum over its clients at work (p,), or with `keep` their blocks (clients, p)."""
    results: list[Tensor | None] = [None] * len(problems)
    alike: dict[tuple[object, ...], list[int]] = {}
    for i, problem in enumerate(problems):
        if not keep and can_share(problem) and problem.passes is not None:
            results[i] = solve_shared(problem, weights[i], threads=threads)
            continue
        kind = choose(problem) if strategy == "auto" else strategy
        if kind == "loop":
            results[i] = solve_loop(problem, weights[i], keep=keep, threads=threads)
        else:
            _check_stackable(problem, kind)
            alike.setdefault(_shape(problem, kind), []).append(i)
    with torch.no_grad():
        for (kind, *_), members in alike.items():
            chosen = [problems[i] for i in members]
            solved = solve_stacked(chosen, [weights[i] for i in members], keep=keep, gram=kind == "gram")
            for i, result in zip(members, solved, strict=True):
                results[i] = result
    return [r for r in results if r is not None]


def _shape(problem: Problem, kind: str) -> tuple[object, ...]:
    """Problems with equal shapes can be stacked."""
    known = problem.parts[0].known
    holds = problem.task.holds_head(problem.silo)
    columns = problem.columns if problem.head is not None or holds else None
    return (kind, chains(problem), known.derivative is None, holds, columns, problem.start.shape[-1], problem.steps)


def _check_stackable(problem: Problem, kind: str) -> None:
    silo = problem.task.names[problem.silo]
    if chains(problem) is None:
        raise ConfigError(
            f"run.strategy = {kind!r}: the block of silo '{silo}' is no chain of linear layers: use 'auto' or 'loop'"
        )
    if kind == "gram" and (len(problem.parts) > 1 or problem.task.regulariser.l1):
        raise ConfigError("run.strategy = 'gram' takes one batch a round and no l1: use 'auto' or 'stacked'")
