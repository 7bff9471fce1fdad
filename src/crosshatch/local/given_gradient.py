"""Local steps along a gradient that is given: for a linear block whose derivative is frozen, it is always the same.

The derivative itself came encrypted, so that the data's part of the gradient is all a silo knows. The regulariser and
the pull to the start are its own and follow its steps.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.local.moments import Moments
from crosshatch.local.problem import Problem


def descend_given(problem: Problem) -> Tensor:
    """The block after steps along the gradient that came with the exchange, for a problem about one client."""
    gradient = problem.parts[0].loss_inputs.gradient
    assert gradient is not None
    if len(problem.parts) > 1 or problem.local.anticipation != 1 or problem.local.continued:
        raise ConfigError(
            "local steps on several batches, with anticipation or with derivatives that go on: a gradient that came "
            "encrypted is that of one batch and stays: set privacy.encryption = 'none', or use fedbcd"
        )
    return descend_along(problem, lambda _: gradient)


def descend_along(problem: Problem, gradient: Callable[[Tensor], Tensor]) -> Tensor:
    """The client's vector (p,), and behind it its optimiser's state where there is one.

    `gradient` is the data's part (p,) of the gradient at a vector (p,).
    """
    regulariser, start, free = problem.task.regulariser, problem.start.reshape(-1), problem.task.free[problem.silo]
    moments = None if problem.state is None else Moments.of(problem.task.optimiser, problem.state[0])
    block = start.clone()
    with torch.no_grad():
        for _ in range(problem.local.steps):
            direction = gradient(block) + regulariser.gradient(block, free) + problem.local.proximal * (block - start)
            if moments is not None:
                direction, moments = moments.after(direction)
            block = block - problem.local.step_size * direction
            if regulariser.l1:
                block = regulariser.proximal(block, problem.local.step_size, free)
    return block if moments is None else moments.behind(block)
