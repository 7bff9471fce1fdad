"""ABCD's theorem, ours: with an anticipation of K the objective does not rise, whatever the number of local steps.

The statement and its proof are on docs/algorithms/abcd-theorem.md.
K: silos   s: factor   L_k: curvatures   M: smoothness   eta: step_size   Q: local_steps   T: iterations
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.seeds import torch_seed
from crosshatch.task.losses import Loss
from crosshatch.theory import theorem_names
from crosshatch.theory.bounds import Bound, StepLimit, admit
from crosshatch.theory.curvature import symmetric_norm

_PRODUCTS = 50


@dataclass(frozen=True)
class Anticipation:
    """What the theorem needs to know of a federation of linear blocks whose scores add up.

    `curvatures` are the L_k of `block_curvature`; `l2` is the regulariser's weight, where they do not hold it already.

    >>> Anticipation(silos=4, factor=4.0, curvatures=(1.0, 2.0, 0.5, 1.0), l2=0.5, quadratic=False).best
    0.11764705882352941
    """

    silos: int
    factor: float
    curvatures: tuple[float, ...]
    l2: float
    quadratic: bool

    def __post_init__(self) -> None:
        if not self.smoothness > 0:
            raise ConfigError("every column of every silo is zero and so is model.l2: there is nothing to descend on")

    @property
    def covered(self) -> bool:
        """Whether the theorem speaks of this s: from K on for every convex loss, above K / 2 for the squared one."""
        return self.factor >= self.silos or (self.quadratic and 2 * self.factor > self.silos)

    @property
    def smoothness(self) -> float:
        """M: the smoothness of what the steepest silo descends on, `s max_k L_k + l2`."""
        return self.factor * max(self.curvatures) + self.l2

    @property
    def best(self) -> float:
        """`1 / M`, where the bound is least."""
        return 1 / self.smoothness

    @property
    def limit(self) -> StepLimit:
        """`2 / M` from s = K on, `2 s / K / M` for the squared loss below: up to it the objective does not rise."""
        limit = 2 * min(1.0, self.factor / self.silos) * self.best
        return StepLimit(limit, limit)

    def bound(self, gap: float, *, step_size: float, iterations: int, local_steps: int) -> Bound:
        """On the squared norms of the full gradient at the rounds' starts: a round takes off at least a share of each.

        That is `eta (1 - eta M / 2)` of it from s = K on; for the squared loss below it is `eta (1 - K / (2 s))` up to
        1 / M, and nothing is known beyond. There is neither noise nor drift, so the number of rounds counts, not that
        of local steps. With an L1 term the norms are those of the proximal step over eta.
        """
        limit = admit(theorem_names.ABCD, self.limit, step_size)
        if self.factor >= self.silos:
            share = 1 - step_size / self.best / 2
        else:
            share = 1 - self.silos / self.factor / 2 if step_size <= self.best else 0.0
        start = gap * local_steps / (step_size * share * iterations) if share > 0 else math.inf
        return Bound(theorem_names.ABCD, start, 0.0, 0.0, step_size, iterations, limit)


def block_curvature(x: Tensor, loss: Loss, *, bias: bool) -> float:
    """L_k: the largest eigenvalue of X_k' X_k / n times the loss's own curvature.

    X_k is a silo's samples (n, ...), flattened, with a column of ones where the block has a bias. Lanczos' method gives
    the eigenvalue from below, by a few per cent at most; the best step size is half of the largest.

    >>> from crosshatch.task.losses import Logistic
    >>> block_curvature(torch.tensor([[1.0], [3.0]]), Logistic(), bias=False)
    1.25
    """
    columns = x.flatten(1) if x.is_floating_point() else x.flatten(1).float()
    width = columns.shape[1]

    def squared(direction: Tensor) -> Tensor:
        scores = columns @ direction[:width]
        scores = scores + direction[width:].sum()  # nothing where there is no bias
        back = (columns.T @ scores, scores.sum().expand(1 if bias else 0))
        return torch.cat(back) / len(columns)

    random = torch.Generator(columns.device).manual_seed(torch_seed(0, "theory columns"))
    start = torch.randn(width + bias, generator=random, dtype=columns.dtype, device=columns.device)
    return loss.curvature * symmetric_norm(squared, start, steps=_PRODUCTS)
