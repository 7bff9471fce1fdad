"""HSGD's adaptive strategies for the intervals and the step size.

Yu et al., section VI: Propositions 2 and 3 (of the first, P = Q, there is nothing to compute).
F0: gap   rho, delta: as in `Constants`   T: iterations
"""

import math
from typing import Literal

from crosshatch.errors import ConfigError

Rule = Literal["paper", "derived"]


def best_interval(
    *, gap: float, rho: float, delta_squared: float, step_size: float, iterations: int, rule: Rule = "paper"
) -> int:
    """Strategy 2 (Proposition 2): P = Q = `sqrt(F0 / (24 rho^2 eta^2 delta^2 T))`, rounded, from 1 to T.

    The paper's derivative (20) of bound times cost is zero where the square has eta^3 instead of eta^2: with rule
    "derived" the interval minimises that product, with "paper" it is the printed one. Without noise it is T.
    """
    power = {"paper": 2, "derived": 3}[rule]
    below = 24 * rho**2 * step_size**power * delta_squared * iterations
    if gap == 0 or below == 0:
        return 1 if gap == 0 else iterations
    return max(1, min(iterations, round(math.sqrt(gap / below))))


def best_step_size(
    gradient_squared: float, *, rho: float, delta_squared: float, global_steps: int, local_steps: int
) -> float:
    """Strategy 3 (Proposition 3): `min(eta_2, 1 / (8 P rho))`, for the current squared norm of the gradient.

    eta_2 is the positive root of the derivative `3 a eta^2 + 2 b eta - c` of (26), with a, b, c of (25).
    """
    if not (math.isfinite(gradient_squared) and gradient_squared > 0):
        raise ConfigError(
            f"squared gradient norm {gradient_squared!r}: strategy 3 needs a positive one, stop where it is 0"
        )
    limit = 1 / (8 * global_steps * rho)
    return min(positive_root(gradient_squared, rho, delta_squared, global_steps, local_steps), limit)


def positive_root(
    gradient_squared: float, rho: float, delta_squared: float, global_steps: int, local_steps: int
) -> float:
    """eta_2 of Proposition 3, written `c / (b + sqrt(b^2 + 3 a c))` against cancellation; infinite without noise."""
    a = 24 * local_steps**2 * global_steps * rho**2 * delta_squared
    b = 3 * global_steps**2 * rho * delta_squared
    c = global_steps / 4 * gradient_squared
    return c / (b + math.sqrt(b**2 + 3 * a * c)) if b > 0 else math.inf
