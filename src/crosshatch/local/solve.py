"""Which strategy computes the local steps: a rule over the modules' kinds and sizes, never a measurement.

A measurement at start-up would make two equal runs differ in their last bits. The choice is recorded with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.local.forward import KeptPass
from crosshatch.local.layers import Layer
from crosshatch.local.loop import solve_loop
from crosshatch.local.one_step.shared import solve_shared
from crosshatch.local.problem import Problem, served_by_one_pass
from crosshatch.local.read_chain import as_chain
from crosshatch.local.stacked.bucket import solve_stacked
from crosshatch.local.stacked.convolved import as_convolved
from crosshatch.local.stacked.recurrent import Cell, as_recurrent
from crosshatch.local.stacked.shapes import Shapes
from crosshatch.task.task import Task

Strategy = Literal["auto", "loop", "stacked", "gram"]

# Up to so many hidden units, and rows per client, the library's LSTM kernel spends most of its time on calls.
_LSTM_HIDDEN, _LSTM_ROWS = 32, 256
_IMAGES = 20  # per client: up to so many, a client's own convolutions are mostly calls
_COPIED = 2**17  # numbers per block: beyond, copies of convolutional blocks for all clients cost more than calls
_NARROWEST = 4  # outputs: a product with fewer waits for memory, and takes as long as one with four

# By silo, shape of a sample, and whether gradients come through the head. Templates do not change during a run.
_SHAPES: WeakKeyDictionary[Task, dict[tuple[int, tuple[int, ...], bool], Shapes | None]] = WeakKeyDictionary()


def choose(problem: Problem) -> Literal["loop", "stacked", "gram", "given"]:
    """The strategy for a silo: chains, LSTMs and a few images are stacked, in Gram form where that is less work."""
    if problem.parts[0].loss_inputs.gradient is not None:
        return "given"
    shapes = _shapes_of(problem)
    if shapes is None:
        return "loop"
    if isinstance(shapes.front, Cell):
        rows, at_work = problem.parts[0].counts.sum(), np.count_nonzero(problem.parts[0].counts)
        return "stacked" if shapes.front.hidden <= _LSTM_HIDDEN and rows <= _LSTM_ROWS * at_work else "loop"
    rows = int(problem.parts[0].counts.max(initial=0))
    if shapes.front is not None and rows > _IMAGES:
        return "loop"
    pays = _gram_pays if shapes.front is None else _growing_pays
    if _takes_gram(problem) and pays(rows, problem.local.steps, shapes.block[0]):
        return "gram"
    return "loop" if shapes.front is not None and problem.start.shape[-1] > _COPIED else "stacked"


def _takes_gram(problem: Problem) -> bool:
    return len(problem.parts) == 1 and not problem.task.regulariser.l1 and problem.state is None


def _gram_pays(rows: int, steps: int, layer: Layer) -> bool:
    """Compare a client's multiplications in the first layer: m rows, d inputs, o outputs, Q steps.

    In Gram form m^2 d for the products of its rows, m^2 o per step, and twice m d o; otherwise 2 m d o per step.
    """
    inputs, outputs = layer.inputs, max(layer.outputs, _NARROWEST)
    gram = rows * inputs + steps * rows * outputs + 2 * inputs * outputs
    return gram < 2 * steps * inputs * outputs


def _growing_pays(rows: int, steps: int, layer: Layer) -> bool:
    """Behind convolutions: whether the rows which make up a client's layer are fewer numbers than the layer itself."""
    return rows * steps * (layer.inputs + layer.outputs) < layer.inputs * layer.outputs


def solve(
    problems: Sequence[Problem],
    weights: Sequence[Tensor],
    *,
    keep: bool,
    strategy: Strategy,
    threads: int,
    passes: Sequence[KeptPass | None] = (),
) -> list[Tensor]:
    """Each silo's weighted sum over its clients at work (p,), or with `keep` their blocks (clients, p).

    `passes` are forward passes that the problems' first steps begin with, where somebody kept them.

    Problems with an optimiser's state are solved with `keep`: behind each block there is its new state.
    """
    results: dict[int, Tensor] = {}
    passes = passes or [None] * len(problems)
    shared = [] if keep else served_by_one_pass(problems, passes)
    if shared:
        chosen, found = [problems[i] for i in shared], [one for i in shared if (one := passes[i]) is not None]
        solved = solve_shared(chosen, [weights[i] for i in shared], found, threads=threads)
        if len(shared) == len(problems):
            return solved
        results.update(zip(shared, solved, strict=True))
    loop: list[int] = []
    alike: dict[tuple[object, ...], tuple[bool, Shapes, list[int]]] = {}
    for i, problem in enumerate(problems):
        if i in results:
            continue
        kind = choose(problem) if strategy == "auto" else strategy
        if kind == "loop":
            loop.append(i)
        else:
            shapes = _stackable(problem, kind)
            alike.setdefault(_alike(problem, kind, shapes), (kind == "gram", shapes, []))[2].append(i)
    with torch.no_grad():
        if loop:
            solved = solve_loop([problems[i] for i in loop], [weights[i] for i in loop], keep=keep, threads=threads)
            results.update(zip(loop, solved, strict=True))
        for gram, shapes, members in alike.values():
            chosen, client_weights = [problems[i] for i in members], [weights[i] for i in members]
            solved = solve_stacked(
                chosen, shapes, client_weights, [passes[i] for i in members], keep=keep, gram=gram, threads=threads
            )
            results.update(zip(members, solved, strict=True))
    return [results[i] for i in range(len(problems))]


def _stackable(problem: Problem, kind: str) -> Shapes:
    """The layers to stack, or a ConfigError where the strategy cannot be had."""
    shapes = _shapes_of(problem)
    if problem.task.transfer is not None:
        raise ConfigError(f"run.strategy = {kind!r} is not for transfer: use 'auto' or 'loop'")
    if shapes is None:
        silo = problem.task.names[problem.silo]
        raise ConfigError(
            f"run.strategy = {kind!r}: the block of silo '{silo}' is not a chain of linear layers, an LSTM or a CNN: "
            "use 'auto' or 'loop'"
        )
    if kind == "gram" and isinstance(shapes.front, Cell):
        raise ConfigError(f"run.strategy = 'gram': silo '{problem.task.names[problem.silo]}' has an LSTM: use 'auto'")
    if kind == "gram" and not _takes_gram(problem):
        raise ConfigError(
            "run.strategy = 'gram' takes one batch per round, no l1 and plain steps: use 'auto' or 'stacked'"
        )
    return shapes


def _alike(problem: Problem, kind: str, shapes: Shapes) -> tuple[object, ...]:
    """Problems equal in this can be stacked."""
    columns = problem.columns if shapes.head else None
    sent = problem.parts[0].loss_inputs.derivative is not None
    return kind, shapes, sent, columns, problem.start.shape[-1], problem.local.steps


def _shapes_of(problem: Problem) -> Shapes | None:
    """The layers to stack, or None where stacking by hand is impossible."""
    first = problem.parts[0]
    key = problem.silo, tuple(first.x.shape[1:]), first.loss_inputs.derivative is None
    known = _SHAPES.setdefault(problem.task, {})
    if key not in known:
        known[key] = _read_shapes(problem.task, *key)
    return known[key]


def _read_shapes(task: Task, silo: int, sample: tuple[int, ...], through_head: bool) -> Shapes | None:
    module = task.blocks[silo]
    front, block = as_recurrent(module) or as_convolved(module, sample) or (None, as_chain(module))
    head = () if task.head is None or not through_head else as_chain(task.head)
    return None if block is None or head is None else Shapes(front, block, head, task.holds_head(silo))
