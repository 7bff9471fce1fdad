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
from crosshatch.local.layers import Layer
from crosshatch.local.loop import solve_loop
from crosshatch.local.one_step.shared import can_share, solve_shared
from crosshatch.local.problem import Problem
from crosshatch.local.stacked.bucket import shapes_of, solve_stacked
from crosshatch.local.stacked.recurrent import Cell

Strategy = Literal["auto", "loop", "stacked", "gram"]

_HIDDEN, _ROWS = 32, 256  # units and rows a client up to which the library's LSTM kernel is mostly calls
_IMAGES = 20  # a client up to which its own convolutions are mostly calls
_COPIED = 2**17  # numbers behind convolutions beyond which copies of them for all clients cost more than calls
_NARROWEST = 4  # a product with fewer outputs waits for memory, and takes as long as one with so many


def choose(problem: Problem) -> Literal["loop", "stacked", "gram"]:
    """The strategy for a silo: stacked chains, LSTMs and few images, in Gram form where that is less, or the loop."""
    shapes = shapes_of(problem)
    if shapes is None:
        return "loop"
    if isinstance(shapes.front, Cell):
        rows, at_work = problem.parts[0].counts.sum(), np.count_nonzero(problem.parts[0].counts)
        return "stacked" if shapes.front.hidden <= _HIDDEN and rows <= _ROWS * at_work else "loop"
    rows = int(problem.parts[0].counts.max(initial=0))
    if shapes.front is not None and rows > _IMAGES:
        return "loop"
    pays = _gram_pays if shapes.front is None else _growing_pays
    if _takes_gram(problem) and pays(rows, problem.steps, shapes.block[0]):
        return "gram"
    return "loop" if shapes.front is not None and problem.start.shape[-1] > _COPIED else "stacked"


def _takes_gram(problem: Problem) -> bool:
    return len(problem.parts) == 1 and not problem.task.regulariser.l1


def _gram_pays(rows: int, steps: int, layer: Layer) -> bool:
    """Compare a client's multiplications in the first layer: m rows, d inputs, o outputs, Q steps.

    Gram form: m^2 d for the products of its rows, m^2 o a step, and twice m d o; otherwise 2 m d o a step.
    """
    inputs, outputs = layer.inputs, max(layer.outputs, _NARROWEST)
    gram = rows * inputs + steps * rows * outputs + 2 * inputs * outputs
    return gram < 2 * steps * inputs * outputs


def _growing_pays(rows: int, steps: int, layer: Layer) -> bool:
    """Behind convolutions: whether all rows a client's layer is made of are fewer numbers than the layer."""
    return rows * steps * (layer.inputs + layer.outputs) < layer.inputs * layer.outputs


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
            f"run.strategy = {kind!r}: the block of silo '{silo}' is no chain of linear layers, LSTM or CNN: "
            "use 'auto' or 'loop'"
        )
    if kind == "gram" and isinstance(shapes.front, Cell):
        raise ConfigError(f"run.strategy = 'gram': silo '{problem.task.names[problem.silo]}' has an LSTM: use 'auto'")
    if kind == "gram" and not _takes_gram(problem):
        raise ConfigError("run.strategy = 'gram' takes one batch a round and no l1: use 'auto' or 'stacked'")
    known = problem.parts[0].known
    holds = problem.task.holds_head(problem.silo)
    columns = problem.columns if shapes.head else None
    return (kind, shapes, known.derivative is None, holds, columns, problem.start.shape[-1], problem.steps)
