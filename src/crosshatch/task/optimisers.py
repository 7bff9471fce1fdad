"""What a local step makes of its gradient, where it is not the plain step of the papers: momentum and Adam.

An optimiser is a pure function: from a gradient, the moments of the gradients before and the number of steps to a
direction and the new moments. A client's state is one flat vector: every moment as long as its block, and behind them
the number of steps for who counts them. It is zero before the first step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from crosshatch.errors import ConfigError

if TYPE_CHECKING:  # needs torch, which takes seconds to import
    from torch import Tensor

StateRule = Literal["reset", "kept", "averaged"]
"""What becomes of a client's state: zero in every round, kept by the client, or averaged as its block is."""


@dataclass(frozen=True)
class Momentum:
    """Heavy ball: `b <- momentum b + g`, and the step goes along b; with `nesterov` along `g + momentum b`.

    >>> import torch
    >>> direction, (ball,) = Momentum(0.5).step(torch.tensor([1.0]), [torch.tensor([4.0])], torch.tensor(1.0))
    >>> direction
    tensor([3.])
    """

    momentum: float = 0.9
    nesterov: bool = False
    state: StateRule = "reset"

    name: ClassVar[str] = "momentum"
    moments: ClassVar[int] = 1
    counts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _require_decay("momentum", self.momentum)
        _require_rule(self.state)

    def step(self, gradient: Tensor, moments: Sequence[Tensor], count: Tensor) -> tuple[Tensor, list[Tensor]]:  # noqa: ARG002 - the same call for every optimiser
        """The direction, to be taken times the step size, and the new moments, all of the gradient's shape."""
        ball = moments[0] * self.momentum + gradient
        return (gradient + self.momentum * ball if self.nesterov else ball), [ball]


@dataclass(frozen=True)
class Adam:
    """Adam: `m <- b1 m + (1 - b1) g`, `v <- b2 v + (1 - b2) g^2`; the step goes along `m' / (sqrt(v') + epsilon)`.

    `m'` and `v'` make up for the zeros the moments began with: they are divided by `1 - b^t` after t steps. An average
    over clients may have taken half a step: t is a real number.

    >>> import torch
    >>> zero = torch.zeros(1)
    >>> Adam().step(torch.tensor([-7.0]), [zero, zero], torch.tensor(1.0))[0].round(decimals=4)
    tensor([-1.])
    """

    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-8
    state: StateRule = "reset"

    name: ClassVar[str] = "adam"
    moments: ClassVar[int] = 2
    counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(self.betas) != 2:
            raise ConfigError(f"optimiser.betas = {list(self.betas)}: give two numbers, for example [0.9, 0.999]")
        for beta in self.betas:
            _require_decay("betas", beta)
        if isinstance(self.epsilon, bool) or not 0 < self.epsilon < float("inf"):
            raise ConfigError(f"optimiser.epsilon = {self.epsilon}: must be a finite number above 0, for example 1e-8")
        _require_rule(self.state)

    def step(self, gradient: Tensor, moments: Sequence[Tensor], count: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The direction, to be taken times the step size, and the new moments, all of the gradient's shape.

        `count` are the steps with this one, a number for all or one that is broadcast over the gradient.
        """
        mean, square = (moment * beta for moment, beta in zip(moments, self.betas, strict=True))
        mean = mean.add_(gradient, alpha=1 - self.betas[0])
        square = square.addcmul_(gradient, gradient, value=1 - self.betas[1])
        first, second = (_since_zero(beta, count) for beta in self.betas)
        return (mean / first).div_((square / second).sqrt_().add_(self.epsilon)), [mean, square]


Optimiser: TypeAlias = Momentum | Adam


def state_size(optimiser: Optimiser, numbers: int) -> int:
    """How long the state of a client with so many trained numbers is.

    >>> state_size(Momentum(), 10), state_size(Adam(), 10)
    (10, 21)
    """
    return optimiser.moments * numbers + optimiser.counts


def _since_zero(beta: float, count: Tensor) -> Tensor | float:
    """`1 - beta^count`, without the cancellation that would cost single precision half of its digits."""
    return 1.0 if beta == 0 else -(count * log(beta)).expm1()


def _require_decay(key: str, value: float) -> None:
    if isinstance(value, bool) or not (isfinite(value) and 0 <= value < 1):
        raise ConfigError(f"optimiser.{key} has {value}: must be at least 0 and below 1, for example 0.9")


def _require_rule(value: str) -> None:
    if value not in ("reset", "kept", "averaged"):
        raise ConfigError(f"optimiser.state = {value!r}: must be 'reset', 'kept' or 'averaged'")
