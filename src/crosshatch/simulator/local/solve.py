"""Which strategy computes the local steps: a rule over the modules' kinds and sizes, never a measurement.

A measurement at start-up would make two equal runs differ in their last bits. The choice is recorded with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.simulator.local.chain import Chain
from crosshatch.simulator.local.loop import solve_loop
from crosshatch.simulator.local.problem import Problem
from crosshatch.simulator.local.recurrent import Cell
from crosshatch.simulator.local.shared import can_share, solve_shared
from crosshatch.simulator.local.stacked import shapes_of, solve_stacked

Strategy = Literal["auto", "loop", "stacked", "gram"]

_HIDDEN, _ROWS = 32, 256  # units and rows a client up to which the library's LSTM kernel is mostly calls
_IMAGES = 4  # a client up to which its own convolutions are slower than all clients' together
_NARROWEST = 4  # a product with fewer outputs waits for memory, and takes as long as one with so many


def choose(problem: Problem) -> Literal["loop", "stacked", "gram"]:
    """The strategy for a silo: stacking for chains and small LSTMs, in Gram form where that is less; else the loop."""
    shapes = shapes_of(problem)
    if shapes is None:
        return "loop"
    if isinstance(shapes.front, Cell):
        rows, at_work = problem.parts[0].counts.sum(), np.count_nonzero(problem.parts[0].counts)
        return "stacked" if shapes.front.hidden <= _HIDDEN and rows <= _ROWS * at_work else "loop"
    if shapes.front is not None:
        return "gram" if _growing_pays(problem, shapes.block) else "loop"
    return "gram" if _gram_pays(problem, shapes.block) else "stacked"


def _growing_pays(problem: Problem, block: Chain) -> bool:
    """With a few images a client a library's convolutions are mostly calls, and its dense layer is mostly copied.

    That layer stays implicit as long as the rows it is made of are fewer numbers than itself.
    """
    if len(problem.parts) > 1 or problem.task.regulariser.l1:
        return False
    rows, layer = int(problem.parts[0].counts.max(initial=0)), block[0]
    return rows <= _IMAGES and rows * problem.steps * (layer.inputs + layer.outputs) < layer.inputs * layer.outputs


def _gram_pays(problem: Problem, block: Chain) -> bool:
    """Compare a client's multiplications in the first layer: m rows, d inputs, o outputs, Q steps.

    Gram form: m^2 d for the products of its rows, m^2 o a step, and twice m d o; otherwise 2 m d o a step.
    """
    if len(problem.parts) > 1 or problem.task.regulariser.l1:
        return False
    rows, inputs = int(problem.parts[0].counts.max(initial=0)), block[0].inputs
    outputs = max(block[0].outputs, _NARROWEST)
    gram = rows * inputs + problem.steps * rows * outputs + 2 * inputs * outputs
    return gram < 2 * problem.steps * inputs * outputs


def solve(
    problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, strategy: Strategy, threads: int
) -> list[Tensor]:
    """Each silo's weighted sum over its clients at work (p,), or with `keep` their blocks (clients, p)."""
    results: dict[int, Tensor] = {}
    alike: dict[tuple[object, ...], list[int]] = {}
    shared = [] if keep else [i for i, problem in enumerate(problems) if can_share(problem)]
    if shared:
        solved = solve_shared([problems[i] for i in shared], [weights[i] for i in shared], threads=threads)
        if len(shared) == len(problems):
            return solved
        results.update(zip(shared, solved, strict=True))
    with torch.no_grad():
        for i, problem in enumerate(problems):
            if i in results:
                continue
            wanted = choose(problem) if strategy == "auto" else strategy
            alike.setdefault(("loop",) if wanted == "loop" else _shape(problem, wanted), []).append(i)
        for (kind, *_), members in alike.items():
            chosen, shares = [problems[i] for i in members], [weights[i] for i in members]
            if kind == "loop":
                solved = solve_loop(chosen, shares, keep=keep, threads=threads)
            else:
                solved = solve_stacked(chosen, shares, keep=keep, gram=kind == "gram", threads=threads)
            results.update(zip(members, solved, strict=True))
    return [results[i] for i in range(len(problems))]


def _shape(problem: Problem, kind: str) -> tuple[object, ...]:
    """Problems equal in this can be stacked."""
    shapes = shapes_of(problem)
    if shapes is None:
        silo = problem.task.names[problem.silo]
        raise ConfigError(
            f"run.strategy = {kind!r}: the block of silo '{silo}' is neither a chain of linear layers nor an LSTM: "
            "use 'auto' or 'loop'"
        )
    if kind == "gram" and isinstance(shapes.front, Cell):
        raise ConfigError(f"run.strategy = 'gram': silo '{problem.task.names[problem.silo]}' has an LSTM: use 'auto'")
    if kind == "gram" and (len(problem.parts) > 1 or problem.task.regulariser.l1):
        raise ConfigError("run.strategy = 'gram' takes one batch a round and no l1: use 'auto' or 'stacked'")
    known = problem.parts[0].known
    holds = problem.task.holds_head(problem.silo)
    columns = problem.columns if shapes.head else None
    return (kind, shapes, known.derivative is None, holds, columns, problem.start.shape[-1], problem.steps)
