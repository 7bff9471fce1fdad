"""Which strategy computes the local steps: a rule over the modules' kinds and sizes, never a measurement.

A measurement at start-up would make two equal runs differ in their last bits. The choice is recorded with the run.
Where nobody asks for each client's block, the weighted sum over a silo's clients is made here as well.
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
from crosshatch.local.given_gradient import descend_given
from crosshatch.local.layers import Layer
from crosshatch.local.loop import solve_loop
from crosshatch.local.one_step.shared import solve_shared
from crosshatch.local.problem import Problem
from crosshatch.local.read_chain import as_chain
from crosshatch.local.stacked.bucket import solve_stacked
from crosshatch.local.stacked.convolved import as_convolved
from crosshatch.local.stacked.recurrent import Cell, as_recurrent
from crosshatch.local.stacked.shapes import Shapes
from crosshatch.task.task import Task

Strategy = Literal["auto", "loop", "stacked", "gram"]
Way = Literal["auto", "loop", "stacked", "gram", "given"]

# Up to so many rows per client times hidden units squared, the library's LSTM kernel spends most of its time on calls.
_LSTM_WORK = 2**14
_IMAGES = 20  # per client: up to so many, a client's own convolutions are mostly calls
_COPIED = 2**17  # numbers per block: beyond, copies of convolutional blocks for all clients cost more than calls
_NARROWEST = 4  # outputs: a product with fewer waits for memory, and takes as long as one with four

# By silo, shape of a sample, and whether gradients come through the head. Templates do not change during a run.
_SHAPES: WeakKeyDictionary[Task, dict[tuple[int, torch.Size, bool], Shapes | None]] = WeakKeyDictionary()


def choose(problem: Problem, strategy: Strategy = "auto") -> Way:
    """The strategy for a silo: chains, LSTMs and a few images are stacked, in Gram form where that is less work."""
    return _find_way(problem, strategy)[0]


def _find_way(problem: Problem, strategy: Strategy) -> tuple[Way, Shapes | None]:
    """How a problem is solved, and the layers to stack; a ConfigError where the strategy cannot be had."""
    first = problem.parts[0]
    key = problem.silo, first.x.shape[1:], first.loss_inputs.derivative is None
    known = _SHAPES.setdefault(problem.task, {})
    shapes = known[key] if key in known else known.setdefault(key, _read_shapes(problem.task, *key))
    if first.loss_inputs.gradient is not None:
        return "given", None
    if strategy != "auto":
        _require(problem, strategy, shapes)
        return strategy, shapes
    if shapes is None:
        return "loop", None
    front = shapes.front
    if isinstance(front, Cell):
        work = first.counts.sum() * front.hidden**2
        return ("stacked" if work <= _LSTM_WORK * np.count_nonzero(first.counts) else "loop"), shapes
    rows = int(first.counts.max(initial=0))
    if front is not None and rows > _IMAGES:
        return "loop", shapes
    pays = _gram_pays if front is None else _growing_pays
    if _takes_gram(problem) and pays(rows, problem.local.steps, shapes.block[0]):
        return "gram", shapes
    return ("loop" if front is not None and problem.start.shape[-1] > _COPIED else "stacked"), shapes


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
    chosen: dict[str, set[str]] | None = None,
) -> list[Tensor]:
    """Each silo's weighted sum over its clients at work (p,), or with `keep` their blocks (clients, p).

    `passes` are forward passes that the problems' first steps begin with, where somebody kept them. In `chosen` it is
    noted by silo how steps were computed; one pass for all clients is not told apart.

    Problems with an optimiser's state are solved with `keep`: behind each block there is its new state.
    """
    results: dict[int, Tensor] = {}
    passes = passes or [None] * len(problems)
    chosen = {} if chosen is None else chosen
    shared = [] if keep else served_by_one_pass(problems, passes)
    if shared:
        found = [one for i in shared if (one := passes[i]) is not None]
        solved = solve_shared([problems[i] for i in shared], [weights[i] for i in shared], found, threads=threads)
        results.update(zip(shared, solved, strict=True))
    loop: list[int] = []
    alike: dict[tuple[object, ...], tuple[bool, Shapes, list[int]]] = {}
    for i, problem in enumerate(problems):
        name = problem.task.names[problem.silo]
        if i in results:
            if name not in chosen:
                chosen[name] = {choose(problem, strategy)}
            continue
        kind, shapes = _find_way(problem, strategy)
        chosen.setdefault(name, set()).add(kind)
        if kind == "given":
            block = descend_given(problem)
            results[i] = block.unsqueeze(0) if keep else block * weights[i].to(block)
        elif kind == "loop":
            loop.append(i)
        else:
            assert shapes is not None
            sent = problem.parts[0].loss_inputs.derivative is not None
            columns = problem.columns if shapes.head else None
            same = (kind, shapes, sent, columns, problem.start.shape[-1], problem.local.steps)  # can be stacked
            alike.setdefault(same, (kind == "gram", shapes, []))[2].append(i)
    with torch.no_grad():
        if loop:
            solved = solve_loop([problems[i] for i in loop], [weights[i] for i in loop], keep=keep, threads=threads)
            results.update(zip(loop, solved, strict=True))
        for gram, shapes, members in alike.values():
            mine, client_weights = [problems[i] for i in members], [weights[i] for i in members]
            solved = solve_stacked(
                mine, shapes, client_weights, [passes[i] for i in members], keep=keep, gram=gram, threads=threads
            )
            results.update(zip(members, solved, strict=True))
    return [results[i] for i in range(len(problems))]


def served_by_one_pass(problems: Sequence[Problem], passes: Sequence[KeptPass | None]) -> list[int]:
    """Which of the problems are one step from a common start, so that their weighted sums follow from the kept pass."""
    return [
        i
        for i, (problem, kept) in enumerate(zip(problems, passes, strict=True))
        if kept is not None
        and problem.local.steps == 1
        and problem.parts[0].loss_inputs.gradient is None  # a pass does not give what came encrypted
        and problem.task.transfer is None  # what it depends on is in no pass
        # The proximal step is not linear, so its average needs every client's own block.
        and (problem.clients == 1 or problem.task.regulariser.l1 == 0)
    ]


def _require(problem: Problem, kind: str, shapes: Shapes | None) -> None:
    """A ConfigError where a strategy that was asked for cannot be had."""
    silo = problem.task.names[problem.silo]
    if kind == "loop":
        return
    if problem.task.transfer is not None:
        raise ConfigError(f"run.strategy = {kind!r} is not for transfer: use 'auto' or 'loop'")
    if shapes is None:
        raise ConfigError(
            f"run.strategy = {kind!r}: the block of silo '{silo}' is not a chain of linear layers, an LSTM or a CNN: "
            "use 'auto' or 'loop'"
        )
    if kind == "gram" and isinstance(shapes.front, Cell):
        raise ConfigError(f"run.strategy = 'gram': silo '{silo}' has an LSTM: use 'auto'")
    if kind == "gram" and not _takes_gram(problem):
        raise ConfigError(
            "run.strategy = 'gram' takes one batch per round, no l1, plain steps without a pull to the start, and "
            "biases penalised as all else: use 'auto' or 'stacked'"
        )


def _takes_gram(problem: Problem) -> bool:
    """Whether everything in a layer shrinks alike along its steps, on rows that stay."""
    task = problem.task
    plain = problem.state is None and not problem.local.proximal
    alike = not task.regulariser.l1 and task.free[problem.silo] is None
    return len(problem.parts) == 1 and plain and alike


def _read_shapes(task: Task, silo: int, sample: torch.Size, through_head: bool) -> Shapes | None:
    """The layers to stack, or None where stacking by hand is impossible."""
    module = task.blocks[silo]
    front, block = as_recurrent(module) or as_convolved(module, sample) or (None, as_chain(module))
    head = () if task.head is None or not through_head else as_chain(task.head)
    return None if block is None or head is None else Shapes(front, block, head, task.holds_head(silo))
