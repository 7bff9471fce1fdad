"""Local steps of one client along a gradient, whoever computes it; regulariser, pull to the start, optimiser on top.

A gradient may be given: for a linear block whose derivative is frozen, it is always the same. The derivative itself
came encrypted then, so that the data's part of the gradient is all a silo knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.local.modules import call
from crosshatch.local.moments import Moments
from crosshatch.local.problem import Problem

Gradient = Callable[[int, Tensor], tuple[Tensor | None, Tensor | None]]
"""The data's part (..., p) of the gradient, to be written into, at the step with a number and at vectors (..., p).

None: nobody has samples for that step. Behind it who has some, (..., 1); None: all of them.
"""


def descend_given(problem: Problem) -> Tensor:
    """The block after steps along the gradient that came with the exchange, for a problem about one client."""
    gradient = problem.parts[0].loss_inputs.gradient
    assert gradient is not None
    if len(problem.parts) > 1 or problem.local.anticipation != 1 or problem.local.continued:
        raise ConfigError(
            "local steps on several batches, with anticipation or with derivatives that go on: a gradient that came "
            "encrypted is that of one batch and stays: set privacy.encryption = 'none', or use fedbcd"
        )
    state = None if problem.state is None else problem.state[0]
    return descend_along(problem, problem.start.reshape(-1), state, lambda *_: (gradient.clone(), None))


@torch.no_grad()
def descend_along(
    problem: Problem, start: Tensor, state: Tensor | None, gradient: Gradient, into: Tensor | None = None
) -> Tensor:
    """Where clients' steps lead from their starts (..., p), and behind it their optimiser's states (..., s), if any.

    The steps are taken in the memory `into`, where that is given.
    """
    task, silo, local, regulariser = problem.task, problem.silo, problem.local, problem.task.regulariser
    size, free, trained = task.layouts[silo].size, task.free[silo], task.trained[silo]
    moments = None if state is None else Moments.of(task.optimiser, state)
    vector = start.clone() if into is None else into.copy_(start)
    block = vector[..., :size]
    for step in range(local.first, local.first + local.steps):
        direction, alive = gradient(step, vector)
        if direction is None:
            continue
        if regulariser.l2:
            direction[..., :size].add_(regulariser.gradient(block, free))
        if local.proximal:
            direction.add_(vector - start, alpha=local.proximal)
        if trained is not None:
            direction = torch.zeros_like(direction).index_copy_(-1, trained, direction.index_select(-1, trained))
        if moments is not None:
            direction, after = moments.after(direction)
            moments = after if alive is None else after.where(alive, moments)
        vector.sub_(direction if alive is None else direction.where(alive, 0), alpha=local.step_size)
        if regulariser.l1:
            shrunk = regulariser.proximal(block, local.step_size, free)
            block.copy_(shrunk if alive is None else shrunk.where(alive, block))
            if trained is not None:
                vector.copy_(start.index_copy(-1, trained, vector.index_select(-1, trained)))
    if problem.anchors is not None:  # who holds the class mean knows that of its block
        vector[size:] = problem.anchors.class_mean(partial(call, task.blocks[silo], block), every=True)
    return vector if moments is None else moments.behind(vector)
