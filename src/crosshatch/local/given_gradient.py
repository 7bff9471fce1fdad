"""Local steps along a gradient that is given: for a linear block whose derivative is frozen, it is always the same.

The derivative itself came encrypted, so that the data's part of the gradient is all a silo knows. The regulariser and
the pull to the start are its own and follow its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.local.forward import KeptPass
from crosshatch.local.moments import Moments
from crosshatch.local.problem import Problem
from crosshatch.local.solve import Strategy, solve


def solve_given(
    problems: Sequence[Problem],
    weights: Sequence[Tensor],
    *,
    keep: bool,
    strategy: Strategy,
    threads: int,
    passes: Sequence[KeptPass | None] = (),
) -> list[Tensor]:
    """As `solve`, where some problems have their gradient given; each of these is about one client."""
    given = {i for i, problem in enumerate(problems) if problem.parts[0].loss_inputs.gradient is not None}
    others = [i for i in range(len(problems)) if i not in given]
    solved: dict[int, Tensor] = {}
    if others:
        found = solve(
            [problems[i] for i in others], [weights[i] for i in others], keep=keep, strategy=strategy, threads=threads,
            passes=[passes[i] for i in others] if passes else (),
        )  # fmt: skip
        solved.update(zip(others, found, strict=True))
    for i in given:
        block = _along_one(problems[i])
        solved[i] = block.unsqueeze(0) if keep else block * weights[i].to(block)
    return [solved[i] for i in range(len(problems))]


def _along_one(problem: Problem) -> Tensor:
    """The client's block after steps along the gradient that came with the exchange."""
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
    regulariser, start = problem.task.regulariser, problem.start.reshape(-1)
    moments = None if problem.state is None else Moments.of(problem.task.optimiser, problem.state[0])
    block = start.clone()
    with torch.no_grad():
        for _ in range(problem.local.steps):
            direction = gradient(block) + regulariser.l2 * block + problem.local.proximal * (block - start)
            if moments is not None:
                direction, moments = moments.after(direction)
            block = block - problem.local.step_size * direction
            if regulariser.l1:
                block = regulariser.proximal(block, problem.local.step_size)
    return block if moments is None else moments.behind(block)
