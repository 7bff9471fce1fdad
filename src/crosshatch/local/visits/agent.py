"""An agent's local work on its own block: Q proximal gradient steps with a token's scores.

Three ways to the same steps, by what the block is:

- `gram`: a linear block under the squared loss, from X'X (`crosshatch.local.visits.linear_visits`);
- `linear`: a linear block under any loss;
- `module`: anything else, by automatic differentiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from crosshatch.local.read_chain import as_chain
from crosshatch.local.visits.linear_visits import FromGram, StepByStep, Visits
from crosshatch.task.losses import Loss, Squared
from crosshatch.task.task import Task

Way = Literal["gram", "linear", "module"]
_EXACT = 1024  # up to this size the largest eigenvalue is computed exactly, beyond it by Lanczos steps


@dataclass
class Agent:
    """One silo: its columns `x` (n, ...) of all samples, the labels `y` (n,), and the block's number in the task."""

    task: Task
    silo: int
    x: Tensor
    y: Tensor
    width: int  # of the embeddings: scores per sample

    def __post_init__(self) -> None:
        """Lay images out as rows where the block is one layer that does so itself."""
        chain = as_chain(self.task.blocks[self.silo])
        if chain is not None and len(chain) == 1 and self.x.dim() > 2:
            self.x = self.x.flatten(1)

    @cached_property
    def way(self) -> Way:
        """How visits are computed."""
        chain = as_chain(self.task.blocks[self.silo])
        if chain is None or len(chain) > 1 or chain[0].activation != "none" or self.x.dim() != 2:
            return "module"
        plain = self.width == 1 and not chain[0].bias
        few = self.x.shape[1] <= self.x.shape[0]
        return "gram" if plain and few and isinstance(self.loss, Squared) else "linear"

    @cached_property
    def quick(self) -> Visits | None:
        """The quick way, for a linear block with one score per sample and no bias; it shares memory with NumPy."""
        plain = self.is_linear and self.width == 1 and self.task.layouts[self.silo].size == self.x.shape[1]
        if not plain or self.x.device.type != "cpu" or self.loss.name not in ("squared", "logistic"):
            return None
        given = self.x, self.y, self.task.regulariser
        return FromGram(*given) if self.way == "gram" else StepByStep(*given, self.loss.name == "logistic")

    @property
    def is_linear(self) -> bool:
        """Whether outputs are linear in the block's parameters, so that averages of outputs are outputs of averages."""
        return self.way != "module"

    @property
    def loss(self) -> Loss:
        return self.task.loss

    @cached_property
    def smoothness(self) -> float:
        """L: the largest curvature of the summed loss along the block's parameters; only for a linear block."""
        return self.loss.curvature * self.norm_squared

    @cached_property
    def largest_step(self) -> float:
        """One over the smoothness; any step does where the block's features are all zero."""
        return 1.0 / self.smoothness if self.smoothness else 1.0

    @property
    def design(self) -> Tensor:
        """What a linear block multiplies with its parameters, (n, d): the bias is the weight of a column of ones."""
        assert self.is_linear
        has_bias = self.task.layouts[self.silo].size > self.width * self.x.shape[1]
        return torch.cat([self.x, self.x.new_ones(len(self.x), 1)], dim=1) if has_bias else self.x

    @cached_property
    def norm_squared(self) -> float:
        """The square of the design's largest singular value, by way of the smaller of X'X and XX'."""
        x = self.design
        wide = x.shape[1] > x.shape[0]
        if min(x.shape) <= _EXACT:
            product = (x @ x.T if wide else x.T @ x).double()
            return float(torch.linalg.eigvalsh(product)[-1])
        from scipy.sparse.linalg import svds  # takes its time to import, and few need it

        exact, start = x.double().numpy(force=True), np.ones(min(x.shape))
        return float(svds(exact, k=1, v0=start, return_singular_vectors=False)[0]) ** 2

    def embed(self, theta: Tensor) -> Tensor:
        """Outputs (n, e) under the block's flat parameters."""
        with torch.no_grad():
            return self.task.embed(self.silo, theta, self.x)

    def visit(self, theta: Tensor, scores: Tensor, *, steps: int, step_size: float) -> None:
        """Q proximal steps, in place: `theta` (p,) is the token's copy of this block, `scores` (n, e) the token."""
        if self.quick is not None:
            self.quick(theta, scores.view(-1), steps, step_size)
        elif self.is_linear:
            self._visit_linear(theta, scores, steps, step_size)
        else:
            self._visit_module(theta, scores, steps, step_size)

    def _visit_linear(self, theta: Tensor, scores: Tensor, steps: int, step: float) -> None:
        for _ in range(steps):
            gradient = self.gradient(self.loss.derivative(scores, self.y))
            after = self.shrink(torch.add(theta, gradient, alpha=-step), step)
            self.add_outputs(after - theta, scores)
            theta.copy_(after)

    def add_outputs(self, theta: Tensor, scores: Tensor) -> None:
        """Add a linear block's outputs under `theta` (p,) to `scores` (n, e)."""
        entries = self.width * self.x.shape[1]
        if self.width == 1:
            scores[:, 0].addmv_(self.x, theta[:entries])
        else:
            scores.addmm_(self.x, theta[:entries].view(self.width, -1).T)
        if len(theta) > entries:
            scores.add_(theta[entries:])

    def gradient(self, derivative: Tensor) -> Tensor:
        """The gradient (p,) of a linear block from derivatives (n, e) in the scores."""
        weights = torch.mv(self.x.T, derivative[:, 0]) if self.width == 1 else (derivative.T @ self.x).reshape(-1)
        has_bias = self.task.layouts[self.silo].size > weights.numel()
        return torch.cat([weights, derivative.sum(0)]) if has_bias else weights

    def _visit_module(self, theta: Tensor, scores: Tensor, steps: int, step: float) -> None:
        """The token without this agent's part stays fixed; the part is computed anew at every step."""
        leaf = theta.clone().requires_grad_()
        rest = None
        for _ in range(steps):
            out = self.task.embed(self.silo, leaf, self.x)
            if rest is None:
                rest = scores - out.detach()
            value = self.loss.value(rest + out, self.y).sum()
            (gradient,) = torch.autograd.grad(value, leaf)
            after = self.shrink(leaf.detach() - step * gradient, step)
            leaf = after.requires_grad_()
        assert rest is not None
        theta.copy_(leaf.detach())
        torch.add(rest, self.embed(theta), out=scores)

    def shrink(self, theta: Tensor, step: float) -> Tensor:
        """The proximal operator of the regulariser."""
        return self.task.regulariser.shrink(theta, step, self.task.free[self.silo])


def start_of(task: Task, silo: int, initial: Tensor) -> Tensor:
    """A block's first weights: those of the task with the last layer of a chain at zero, so that all outputs are zero.

    A token then begins as zeros and nobody needs to be asked for its first scores.
    """
    chain = as_chain(task.blocks[silo])
    if chain is None or chain[-1].activation not in ("none", "tanh"):
        return initial  # a sigmoid of zero is one half, and a rectifier passes no gradient there
    start = initial.clone()
    start[len(start) - chain[-1].size :] = 0
    return start
